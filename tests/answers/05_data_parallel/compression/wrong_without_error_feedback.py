"""What is not sent is forgotten."""

CHANGE = """
-    return total, kept
+    return total, torch.zeros_like(kept)
"""
