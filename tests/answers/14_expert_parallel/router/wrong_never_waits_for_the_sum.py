"""The gradient of the router is returned while it may still be under way."""

CHANGE = """
-    dist.all_reduce(grad_weight)
+    dist.all_reduce(grad_weight, async_op=True)
"""
