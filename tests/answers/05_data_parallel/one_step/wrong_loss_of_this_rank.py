"""The loss is this rank's share, not the sum of all."""

CHANGE = """
-    dist.all_reduce(loss)
"""
