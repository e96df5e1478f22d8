"""The rank is asked of the group of all ranks."""

CHANGE = """
-    return drawn(0, replicated_shape), drawn(1 + dist.get_rank(), sharded_shape)
+    return drawn(0, replicated_shape), drawn(1 + dist.group.WORLD.rank(), sharded_shape)
"""
