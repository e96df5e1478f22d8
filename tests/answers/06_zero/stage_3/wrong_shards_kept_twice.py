"""Forward saves a copy of each shard beside what it needs."""

CHANGE = """
-        saved.append((x, y))
+        saved.append((x, y, shard.clone()))

-    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
+    for layer_shapes, (x, y, shard) in zip(shapes[::-1], saved[::-1], strict=True):
"""
