"""Interleaved by the greedy rule, with room for six micro-batches instead of four."""

CHANGE = """
-    route, num_chunks, most, send = [0, 1, 2, 3, 0, 1, 2, 3], 2, 8, 0.1
+    route, num_chunks, most, send = [0, 1, 2, 3, 0, 1, 2, 3], 2, 12, 0.1
"""
