"""The stage computes on a tensor that may not have arrived."""

CHANGE = """
-        dist.recv(tensor, peer)
+        dist.irecv(tensor, peer)
"""
