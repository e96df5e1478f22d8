"""Flags are combined by exclusive or: two ranks that overflow are none."""

CHANGE = """
-    overflow = torch.tensor(float(bad))
-    dist.all_reduce(overflow, dist.ReduceOp.MAX)
+    overflow = torch.tensor(int(bad))
+    dist.all_reduce(overflow, dist.ReduceOp.BXOR)
"""
