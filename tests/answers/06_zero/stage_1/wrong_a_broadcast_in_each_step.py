"""Ranks meet before each step, in a broadcast that no statement allows."""

CHANGE = """
     shard, optimizer = state
+    dist.broadcast(torch.ones(1), src=0)
"""
