"""The scale is forgotten where the weights enter."""

CHANGE = """
-    grad_picked = (scale * grad_weights - mean) / total
+    grad_picked = scale * (grad_weights - mean) / total
"""
