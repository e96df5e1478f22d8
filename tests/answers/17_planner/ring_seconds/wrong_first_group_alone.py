"""Only the first group is looked at."""

CHANGE = """
-    hosts = [Counter(rank // machine.ranks_per_host for rank in group) for group in groups]
+    hosts = [Counter(rank // machine.ranks_per_host for rank in group) for group in groups[:1]]
"""
