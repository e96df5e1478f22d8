"""The optimizer steps while the reduce-scatter is still under way."""

CHANGE = """
-    REDUCE_SCATTER(mine, flat)
+    REDUCE_SCATTER(mine, flat, async_op=True)
"""
