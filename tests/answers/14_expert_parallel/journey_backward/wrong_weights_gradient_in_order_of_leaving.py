"""The weights' gradients stay in the order in which rows left."""

CHANGE = """
-    grad_weights[order] = (grad_y[tokens] * returned).sum(dim=1)
+    grad_weights[: len(order)] = (grad_y[tokens] * returned).sum(dim=1)
"""
