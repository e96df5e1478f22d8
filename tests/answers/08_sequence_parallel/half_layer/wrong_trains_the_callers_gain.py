"""The gain takes a step of its own in backward."""

CHANGE = """
-    dist.all_reduce(grad_gain)
+    dist.all_reduce(grad_gain)
+    gain -= 0.1 * grad_gain
"""
