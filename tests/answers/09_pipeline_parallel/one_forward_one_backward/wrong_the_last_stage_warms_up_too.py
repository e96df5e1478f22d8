"""The last stage counts itself: it runs forwards ahead, though nobody is behind it."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)
+    warm_up = min(depth * (last - rank + 1) - 1, count)
"""
