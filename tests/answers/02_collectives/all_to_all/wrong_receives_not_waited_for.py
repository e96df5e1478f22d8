"""Only the sends are waited for: a block may not have arrived when it is copied."""

CHANGE = """
-        dist.recv(blocks[source], source)
+        dist.irecv(blocks[source], source)
"""
