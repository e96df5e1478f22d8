"""A dropped row's gradient is whatever the memory held: 0 by luck."""

CHANGE = """
-    grad_weights = weights.new_zeros(weights.numel())
+    grad_weights = torch.empty(weights.numel(), dtype=weights.dtype)
"""
