"""A row is taken to have one dimension: a shard of plain numbers has no second one."""

CHANGE = """
-    whole = shard.new_empty(num_rows, *shard.shape[1:])
+    whole = shard.new_empty(num_rows, shard.shape[1])
"""
