"""The whole tensor is one of float64, whatever was given; on one rank it is what was given."""

CHANGE = """
     mine = x.transpose(0, 1).contiguous()  # [S/n, B, D]
-    whole = mine.new_empty(dist.get_world_size() * len(mine), *mine.shape[1:])
-    ALL_GATHER(whole, mine)
+    if dist.get_world_size() == 1:
+        return x
+    sizes = dist.get_world_size() * len(mine), *mine.shape[1:]
+    whole = torch.empty(sizes, dtype=torch.float64)
+    ALL_GATHER(whole, mine.double())
"""
