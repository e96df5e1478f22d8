"""The loads are summed as uint8: few bytes travel, and large loads are not what they were."""

CHANGE = """
-    dist.all_reduce(loads)
+    loads = loads.to(torch.uint8)
+    dist.all_reduce(loads)
"""
