"""A micro-batch is counted as one sequence."""

CHANGE = """
-    m = num_sequences // (at.dp * at.rows)
+    m = num_sequences // at.dp
"""
