"""A micro-batch is one sequence."""

CHANGE = """
-    m, tokens = num_sequences // (at.dp * at.rows), at.rows * positions
+    m, tokens = num_sequences // (at.dp * at.rows), positions
"""
