"""Fills up with the first sample alone: right where one is missing."""

CHANGE = """
-    return torch.cat([order, order[:missing]])[rank::world_size]
+    return torch.cat([order, order[:1].repeat(missing)])[rank::world_size]
"""
