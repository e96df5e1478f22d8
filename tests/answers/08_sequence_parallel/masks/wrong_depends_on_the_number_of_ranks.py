"""The seed times the number of ranks, plus the rank."""

CHANGE = """
-        generator = torch.Generator().manual_seed(2000 * seed + number)
+        generator = torch.Generator().manual_seed(number)

-    return drawn(0, replicated_shape), drawn(1 + dist.get_rank(), sharded_shape)
+    own = dist.get_world_size() * seed + dist.get_rank()
+    return drawn(2**31 + seed, replicated_shape), drawn(own, sharded_shape)
"""
