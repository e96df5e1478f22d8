"""Recomputation sends nothing again."""

CHANGE = """
-    sums = (6 if full else 4) * 2 * gather / 2
+    sums = 4 * 2 * gather / 2
"""
