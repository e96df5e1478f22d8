"""Rows leave by rank, but not by expert, as the counts say."""

CHANGE = """
-    order = by_rank.argsort()[numbers].argsort()
+    order = home[numbers].argsort(stable=True)
"""
