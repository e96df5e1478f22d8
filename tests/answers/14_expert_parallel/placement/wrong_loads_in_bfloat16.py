"""The loads are summed as bfloat16: of nearly equal loads it cannot tell which is larger."""

CHANGE = """
-    dist.all_reduce(loads)
+    loads = loads.to(torch.bfloat16)
+    dist.all_reduce(loads)
"""
