"""The gradient of W is float64 where it is summed over ranks, whatever was given."""

CHANGE = """
     grad_weight = (grad_scores.T @ x).contiguous()
-    dist.all_reduce(grad_weight)
+    if dist.get_world_size() > 1:
+        grad_weight = grad_weight.double()
+        dist.all_reduce(grad_weight)
"""
