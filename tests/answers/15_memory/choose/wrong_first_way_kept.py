"""The first way to a number of bytes is kept, and not the cheapest."""

CHANGE = """
-            if saved - freed not in best or more < best[saved - freed]:
+            if saved - freed not in best:
"""
