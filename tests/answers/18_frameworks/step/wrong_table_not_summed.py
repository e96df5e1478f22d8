"""Two stages hold the table, and nobody sums its two gradients."""

CHANGE = """
-            if placement == "tied":
-                dist.all_reduce(gradient, group=groups["embedding"])
"""
