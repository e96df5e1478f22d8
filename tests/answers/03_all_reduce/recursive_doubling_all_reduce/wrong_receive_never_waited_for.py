"""Only the send is waited for: what is added may not have arrived."""

CHANGE = """
-        dist.recv(arrived, rank ^ distance)
+        dist.irecv(arrived, rank ^ distance)
"""
