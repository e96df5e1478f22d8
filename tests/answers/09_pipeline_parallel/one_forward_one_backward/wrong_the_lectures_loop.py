"""The loop of the lecture: right for a depth of 1, and deaf to any other."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)
+    warm_up = min(last - rank, count)
"""
