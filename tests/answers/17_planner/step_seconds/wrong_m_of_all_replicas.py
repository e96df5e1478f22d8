"""m is counted over all replicas."""

CHANGE = """
-    m, tokens = num_sequences // (at.dp * at.rows), at.rows * positions
+    m, tokens = num_sequences // at.rows, at.rows * positions
"""
