"""The last check is returned, not the first."""

CHANGE = """
-                    found.setdefault(rank, number)
+                    found[rank] = number
"""
