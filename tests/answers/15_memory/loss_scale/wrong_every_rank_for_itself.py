"""No rank asks the others: one skips, the others step."""

CHANGE = """
-    overflow = torch.tensor(float(bad))
-    dist.all_reduce(overflow, dist.ReduceOp.MAX)
-    if overflow:
+    if bad:
"""
