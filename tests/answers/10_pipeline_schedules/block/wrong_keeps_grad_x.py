"""The gradient that leaves is kept, too."""

CHANGE = """
-    return grad_x, (x, g * u, grad_y, grad_g, grad_u)
+    return grad_x, (x, g * u, grad_y, grad_g, grad_u, grad_x)

-    x, h, grad_y, grad_g, grad_u = kept
+    x, h, grad_y, grad_g, grad_u, _ = kept
"""
