"""Changes the caller's tensor."""

CHANGE = """
-    total = tensor.flatten().clone()
+    total = tensor.reshape(-1)
"""
