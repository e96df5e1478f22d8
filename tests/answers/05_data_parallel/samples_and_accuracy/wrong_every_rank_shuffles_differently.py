"""Each rank shuffles with a seed of its own, so samples are missed."""

CHANGE = """
-    generator = torch.Generator().manual_seed(seed + epoch)
+    generator = torch.Generator().manual_seed(seed + epoch + rank)
"""
