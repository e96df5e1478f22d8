"""The rank times 100 000, plus the seed: seed 100 000 of one rank is seed 0 of the next."""

CHANGE = """
-    return drawn(0, replicated_shape), drawn(1 + dist.get_rank(), sharded_shape)
+    own = torch.Generator().manual_seed(100_000 * (1 + dist.get_rank()) + seed)
+    return drawn(0, replicated_shape), torch.rand(sharded_shape, generator=own) >= p
"""
