"""The same greedy rule on a V, where it is short-sighted."""

CHANGE = """
-    route, num_chunks, most, send = [0, 1, 2, 3, 0, 1, 2, 3], 2, 8, 0.1
+    route, num_chunks, most, send = [0, 1, 2, 3, 3, 2, 1, 0], 2, 8, 0.1
"""
