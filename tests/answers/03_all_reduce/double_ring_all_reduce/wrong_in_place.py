"""The caller's tensor is what goes round."""

CHANGE = """
-    total = tensor.flatten().clone()
+    total = tensor.flatten()
"""
