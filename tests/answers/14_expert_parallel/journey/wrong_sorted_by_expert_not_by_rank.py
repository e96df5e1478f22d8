"""Sorted by the number of the expert, as if experts were dealt out in order."""

CHANGE = """
-    by_rank = home.argsort()
-    order = by_rank.argsort()[numbers].argsort()
+    by_rank = torch.arange(len(home))
+    order = numbers.argsort(stable=True)
"""
