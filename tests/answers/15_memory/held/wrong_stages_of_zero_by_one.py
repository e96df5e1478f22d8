"""ZeRO-1 shards the weights: its stages are counted from the other end."""

CHANGE = """
-    for kind, each, since in ("weights", 2, 3), ("gradients", 2, 2), ("optimizer", 12, 1):
+    for kind, each, since in ("weights", 2, 1), ("gradients", 2, 2), ("optimizer", 12, 3):
"""
