"""The state holds the shard that it began with, too."""

CHANGE = """
-    return shard, optimizer([shard])
+    return shard, optimizer([shard]), shard.clone()

-    shard, optimizer = state
+    shard, optimizer, _ = state
"""
