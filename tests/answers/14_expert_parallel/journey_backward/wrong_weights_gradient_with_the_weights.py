"""The weight's gradient is multiplied by the weight."""

CHANGE = """
-    grad_weights[order] = (grad_y[tokens] * returned).sum(dim=1)
+    grad_weights[order] = (weights.flatten()[order, None] * grad_y[tokens] * returned).sum(dim=1)
"""
