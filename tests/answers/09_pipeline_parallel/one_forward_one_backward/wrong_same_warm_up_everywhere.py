"""Every stage warms up as long as stage 0."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)
+    warm_up = min(depth * last, count)
"""
