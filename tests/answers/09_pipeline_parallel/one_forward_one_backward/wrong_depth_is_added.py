"""Each stage warms up by one forward more for each further depth, however many stages follow."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)
+    warm_up = min(last - rank + depth - 1, count)
"""
