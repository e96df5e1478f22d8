"""The shard is kept in a global, and the one that is passed is ignored."""

CHANGE = """
+    global kept
     rank, world_size = dist.get_rank(), dist.get_world_size()
-    return [
+    kept = [

-        second_bias.clone(),
-    ]
+        second_bias.clone(),
+    ]
+    return kept

-    first, first_bias, second, second_bias = shard
+    first, first_bias, second, second_bias = kept

-    first, _, second, _ = shard
+    first, _, second, _ = kept
"""
