"""Each gradient is replaced in the caller's list: the tensors that others hold stay 0."""

CHANGE = """
-    for gradient, grad, given in zip(gradients, (grad_g, grad_u, grad_y), (x, x, h), strict=True):
-        gradient += grad.T @ given
+    gradients[0] = gradients[0] + grad_g.T @ x
+    gradients[1] = gradients[1] + grad_u.T @ x
+    gradients[2] = gradients[2] + grad_y.T @ h
"""
