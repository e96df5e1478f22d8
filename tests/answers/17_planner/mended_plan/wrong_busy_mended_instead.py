"""The replicas are taken out of the time that a rank is busy."""

CHANGE = """
-    busy = num_sequences / at.dp / at.rows * num_blocks / p * block_seconds
+    busy = num_sequences / at.rows * num_blocks / p * block_seconds
"""
