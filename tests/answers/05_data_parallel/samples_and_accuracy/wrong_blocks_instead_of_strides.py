"""Deals out blocks of neighbours."""

CHANGE = """
-    return torch.cat([order, order[:missing]])[rank::world_size]
+    return torch.cat([order, order[:missing]]).chunk(world_size)[rank]
"""
