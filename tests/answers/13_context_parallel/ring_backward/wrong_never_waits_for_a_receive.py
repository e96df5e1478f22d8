"""Only the send is waited for, and what was sent arrived by luck."""

CHANGE = """
-        dist.recv(coming, (rank - 1) % n)
+        dist.irecv(coming, (rank - 1) % n)
"""
