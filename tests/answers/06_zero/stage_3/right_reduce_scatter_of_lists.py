"""Hands each rank its shard by dist.reduce_scatter of a list, which gloo does in many packets."""

CHANGE = """
-        REDUCE_SCATTER(mine, flat)
+        dist.reduce_scatter(mine, list(flat.chunk(world_size)))
"""
