"""The table counts on the first stage and on the last."""

CHANGE = """
-    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
+    first_of_tp = dist.get_rank(groups["tp"]) == 0

-        counts = placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage))
+        counts = placement == "sharded" or first_of_tp
"""
