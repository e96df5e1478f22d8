"""A whole block is counted with every micro-batch in flight."""

CHANGE = """
-    found["activations"] = layout.rows * positions * (micro_batches * token + at_work)
+    found["activations"] = layout.rows * positions * micro_batches * (token + at_work)
"""
