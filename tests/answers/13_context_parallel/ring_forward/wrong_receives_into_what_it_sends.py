"""One block for both ways: the next block may arrive in it before it has left."""

CHANGE = """
-            receiving = dist.irecv(coming, (rank - 1) % n)
+            coming = block
+            receiving = dist.irecv(coming, (rank - 1) % n)
         mask = seen(positions[rank], positions[(rank - t) % n])
"""
