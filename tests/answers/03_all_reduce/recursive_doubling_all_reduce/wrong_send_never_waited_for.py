"""The sends are started, and nobody waits for them."""

CHANGE = """
-        sending = dist.isend(total, rank ^ distance)
+        dist.isend(total, rank ^ distance)

-        sending.wait()
"""
