"""What backward needs is kept beside forward: a second batch takes the place of the first."""

CHANGE = """
-    return x, saved
+    stack_forward.kept = saved
+    return x, None

-    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
+    saved = stack_forward.kept
+    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
"""
