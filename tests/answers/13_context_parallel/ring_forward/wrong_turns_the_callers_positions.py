"""The caller's list of positions is turned with the ring, and stays turned."""

CHANGE = """
     rank, n = dist.get_rank(), dist.get_world_size()
-    block = torch.stack([k, v])
+    block, mine = torch.stack([k, v]), positions[rank]

-        mask = seen(positions[rank], positions[(rank - t) % n])
+        mask = seen(mine, positions[rank])

             receiving.wait()
             block = coming
+            positions.insert(0, positions.pop())
"""
