"""A token's k terms overwrite each other."""

CHANGE = """
-    grad_x = torch.zeros_like(grad_y).index_add_(0, tokens, back)
+    grad_x = torch.zeros_like(grad_y)
+    grad_x[tokens] = back
"""
