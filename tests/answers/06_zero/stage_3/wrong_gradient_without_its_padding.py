"""A gradient's shard ends where its padding begins."""

CHANGE = """
-        gradients.append(mine)
+        real = sum(tensor.numel() for tensor in whole) - dist.get_rank() * len(shard)
+        gradients.append(mine[: max(0, real)].clone())
"""
