"""The gradient is divided by the number of ranks."""

CHANGE = """
-    return grad_scores @ weight, grad_weight
+    return grad_scores @ weight, grad_weight / dist.get_world_size()
"""
