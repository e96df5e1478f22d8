"""One error left: a partial gradient is not summed over tp."""

CHANGE = """
-        if placement == "partial":
-            dist.all_reduce(gradient, group=groups["tp"])
"""
