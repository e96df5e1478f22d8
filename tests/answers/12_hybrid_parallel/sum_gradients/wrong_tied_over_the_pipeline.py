"""The table is summed over all stages; middle ones have none."""

CHANGE = """
-            dist.all_reduce(gradient, group=groups["embedding"])
+            dist.all_reduce(gradient, group=groups["pp"])
"""
