"""Dropped rows' weights get a gradient, as if they had travelled."""

CHANGE = """
-    grad_weights = weights.new_zeros(weights.numel())
+    grad_weights = grad_y.sum(dim=1).repeat_interleave(weights.shape[1])
"""
