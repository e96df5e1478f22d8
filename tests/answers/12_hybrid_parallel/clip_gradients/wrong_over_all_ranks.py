"""The squares are summed over all ranks, so every replica counts."""

CHANGE = """
-    dist.all_reduce(square, group=groups["tp-pp"])
+    dist.all_reduce(square)
"""
