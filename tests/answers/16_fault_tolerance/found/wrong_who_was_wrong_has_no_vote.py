"""A rank that was wrong at an earlier check is no more counted."""

CHANGE = """
-            values = [by_rank[rank] for rank in group]
+            group = [rank for rank in group if rank not in found] or group
+            values = [by_rank[rank] for rank in group]
"""
