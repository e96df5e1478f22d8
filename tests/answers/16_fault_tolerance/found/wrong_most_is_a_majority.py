"""The most frequent fingerprint is right, however few have it."""

CHANGE = """
-                if not sure or by_rank[rank] != right:
+                if by_rank[rank] != right:
"""
