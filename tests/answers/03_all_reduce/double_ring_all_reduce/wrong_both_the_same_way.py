"""Both halves go round in the same direction."""

CHANGE = """
-    ways = [(halves[0], rank, 1), (halves[1], n - 1 - rank, -1)]  # shards, place, direction
+    ways = [(halves[0], rank, 1), (halves[1], rank, 1)]  # shards, place in the ring, direction
"""
