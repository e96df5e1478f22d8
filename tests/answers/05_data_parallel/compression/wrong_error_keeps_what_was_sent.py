"""The error is the whole gradient, what was sent included."""

CHANGE = """
-    kept = wanted.index_fill(0, positions, 0)
+    kept = wanted
"""
