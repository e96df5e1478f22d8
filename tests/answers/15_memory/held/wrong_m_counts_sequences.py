"""A replica's sequences are taken for its micro-batches."""

CHANGE = """
-    m = num_sequences // (layout.dp * layout.rows)
+    m = num_sequences // layout.dp
"""
