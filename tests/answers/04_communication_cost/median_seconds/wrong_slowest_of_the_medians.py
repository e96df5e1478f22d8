"""The median of each rank first, then the slowest rank."""

CHANGE = """
-    dist.all_reduce(seconds, dist.ReduceOp.MAX)
-    return seconds.median().item()
+    middle = seconds.median()
+    dist.all_reduce(middle, dist.ReduceOp.MAX)
+    return middle.item()
"""
