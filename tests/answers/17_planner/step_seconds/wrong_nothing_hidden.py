"""No message is hidden."""

CHANGE = """
-    found["gradients"] = sent - 0.8 * min(sent, turn)
+    found["gradients"] = sent
"""
