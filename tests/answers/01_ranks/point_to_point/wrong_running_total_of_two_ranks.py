"""Passes on its own count and not what came before."""

CHANGE = """
-        dist.send(total, rank + 1)
+        dist.send(count, rank + 1)
"""
