"""Tokens' gradients are summed over ranks, though each rank has its own tokens."""

CHANGE = """
-    return grad_scores @ weight, grad_weight
+    grad_x = (grad_scores @ weight).contiguous()
+    dist.all_reduce(grad_x)
+    return grad_x, grad_weight
"""
