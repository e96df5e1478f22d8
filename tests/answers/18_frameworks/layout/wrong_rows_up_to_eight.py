"""Micro-batches of more than eight rows are not tried."""

CHANGE = """
-        for rows in range(1, num_sequences // layout.dp + 1):
+        for rows in range(1, min(num_sequences // layout.dp, 8) + 1):
"""
