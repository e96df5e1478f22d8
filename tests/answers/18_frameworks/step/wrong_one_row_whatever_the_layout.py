"""Micro-batches of one row, whatever the layout says: right losses, and many messages."""

CHANGE = """
-    m = layout.num_micro_batches(num_sequences)
+    m = num_sequences // layout.dp
"""
