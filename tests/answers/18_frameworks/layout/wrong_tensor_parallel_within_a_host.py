"""A rule of thumb in the place of a price: where hosts have several ranks, tp stays within one."""

CHANGE = """
-            if max(stages) <= memory and MODEL.num_heads % one.tp == 0:
+            inside = ranks_per_host == 1 or one.tp <= ranks_per_host
+            if max(stages) <= memory and MODEL.num_heads % one.tp == 0 and inside:
"""
