"""Rows are flattened by view, which a non-contiguous x or grad_y refuses."""

CHANGE = """
-    rows, grad_rows = grad_y.flatten(0, 1), grad_qkv.flatten(0, 1)
-    gradients = [grad_rows.T @ x.flatten(0, 1), grad_rows.sum(dim=0)]
+    rows, grad_rows = grad_y.view(-1, grad_y.shape[-1]), grad_qkv.flatten(0, 1)
+    gradients = [grad_rows.T @ x.view(-1, x.shape[-1]), grad_rows.sum(dim=0)]
"""
