"""The sum over ranks is copied before it is waited for."""

CHANGE = """
-    dist.all_reduce(grad_weight)
-    return grad_scores @ weight, grad_weight
+    work = dist.all_reduce(grad_weight, async_op=True)
+    found = grad_scores @ weight, grad_weight.clone()
+    work.wait()
+    return found
"""
