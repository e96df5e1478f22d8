"""Each micro-batch overwrites the gradients of the one before."""

CHANGE = """
-    for gradient, grad, given in zip(gradients, (grad_g, grad_u, grad_y), (x, x, h), strict=True):
-        gradient += grad.T @ given
+    gradients[0][:] = grad_g.T @ x
+    gradients[1][:] = grad_u.T @ x
+    gradients[2][:] = grad_y.T @ h
"""
