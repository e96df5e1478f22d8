"""Each stage runs one forward too many before its first backward."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)
+    warm_up = min(depth * (last - rank) + 1, count)
"""
