"""An all-reduce takes as long as an all-gather."""

CHANGE = """
-    sums = (6 if full else 4) * 2 * gather / 2
+    sums = (6 if full else 4) * gather / 2
"""
