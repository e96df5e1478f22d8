"""Each rank's own median."""

CHANGE = """
-    dist.all_reduce(seconds, dist.ReduceOp.MAX)
"""
