"""Only the first pipeline is asked whether it leaves its host."""

CHANGE = """
-    leaves = any(len({rank // machine.ranks_per_host for rank in g}) > 1 for g in groups["pp"])
+    leaves = len({rank // machine.ranks_per_host for rank in groups["pp"][0]}) > 1
"""
