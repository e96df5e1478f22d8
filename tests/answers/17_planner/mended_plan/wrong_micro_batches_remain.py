"""Two mistakes are mended, not the micro-batches of all replicas."""

CHANGE = """
-    m = num_sequences // (at.dp * at.rows)
+    m = num_sequences // at.rows
"""
