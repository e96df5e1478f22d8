"""Gradients are reduced to the first replica, and broadcast from there: as many bytes in all."""

CHANGE = """
-            dist.all_reduce(gradient, group=groups["dp"])
+            dist.reduce(gradient, group=groups["dp"], group_dst=0)
+            dist.broadcast(gradient, group=groups["dp"], group_src=0)
"""
