"""One error left: the tied table is not summed over embedding."""

CHANGE = """
-        if placement == "tied":
-            dist.all_reduce(gradient, group=groups["embedding"])
"""
