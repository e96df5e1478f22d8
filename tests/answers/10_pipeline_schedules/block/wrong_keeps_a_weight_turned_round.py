"""Keeps a copy of a weight for each micro-batch."""

CHANGE = """
-    return grad_x, (x, g * u, grad_y, grad_g, grad_u)
+    return grad_x, (x, g * u, grad_y, grad_g, grad_u, down.T.contiguous())

-    x, h, grad_y, grad_g, grad_u = kept
+    x, h, grad_y, grad_g, grad_u, _ = kept
"""
