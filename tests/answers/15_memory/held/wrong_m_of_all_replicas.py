"""m is counted over all replicas."""

CHANGE = """
-    m = num_sequences // (layout.dp * layout.rows)
+    m = num_sequences // layout.rows
"""
