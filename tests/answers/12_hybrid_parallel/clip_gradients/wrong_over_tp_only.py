"""The norm is that of a stage."""

CHANGE = """
-    dist.all_reduce(square, group=groups["tp-pp"])
+    dist.all_reduce(square, group=groups["tp"])
"""
