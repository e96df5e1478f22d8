"""The keys' receive is begun and never waited for."""

CHANGE = """
         coming = torch.empty_like(tensor)
         sending = dist.isend(tensor, (rank + 1) % n)
-        dist.recv(coming, (rank - 1) % n)
+        dist.irecv(coming, (rank - 1) % n)
         sending.wait()
"""
