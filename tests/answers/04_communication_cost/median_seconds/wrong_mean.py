"""The mean, which one bad repetition moves."""

CHANGE = """
-    return seconds.median().item()
+    return seconds.mean().item()
"""
