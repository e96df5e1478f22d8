"""The shards of the gradients are returned while they may still be under way."""

CHANGE = """
-        REDUCE_SCATTER(mine, flat)
+        REDUCE_SCATTER(mine, flat, async_op=True)
"""
