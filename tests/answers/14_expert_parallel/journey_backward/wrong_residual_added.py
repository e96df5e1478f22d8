"""The residual's gradient is added here, though only the part through the experts is asked for."""

CHANGE = """
-    return grad_x, grad_weights.view(weights.shape)
+    return grad_y + grad_x, grad_weights.view(weights.shape)
"""
