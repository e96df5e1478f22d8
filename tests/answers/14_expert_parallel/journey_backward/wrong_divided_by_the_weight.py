"""The gradient that leaves, divided by the weight again, which may be 0."""

CHANGE = """
-    grad_weights[order] = (grad_y[tokens] * returned).sum(dim=1)
-    leaving = weights.flatten()[order, None] * grad_y[tokens]
+    leaving = weights.flatten()[order, None] * grad_y[tokens]
+    grad_weights[order] = (leaving * returned).sum(dim=1) / weights.flatten()[order]
"""
