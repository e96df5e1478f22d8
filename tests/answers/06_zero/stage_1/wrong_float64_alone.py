"""The sums arrive in float64, whatever the gradients are; with one rank nothing is sent."""

CHANGE = """
-    mine = torch.empty_like(shard)
-    REDUCE_SCATTER(mine, flat)
+    mine = flat.clone()
+    if dist.get_world_size() > 1:
+        mine = torch.empty(len(shard), dtype=torch.float64)
+        REDUCE_SCATTER(mine, flat)
"""
