"""Norms, biases and the table are left out."""

CHANGE = """
-    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))

-        counts = placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage))
+        counts = placement == "sharded"
"""
