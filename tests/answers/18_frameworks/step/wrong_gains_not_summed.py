"""Each tensor-parallel rank keeps its own heads' term of the gains' gradient."""

CHANGE = """
-            if placement == "partial":
-                dist.all_reduce(gradient, group=groups["tp"])
"""
