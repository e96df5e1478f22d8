"""Forgets the epoch."""

CHANGE = """
-    generator = torch.Generator().manual_seed(seed + epoch)
+    generator = torch.Generator().manual_seed(seed)
"""
