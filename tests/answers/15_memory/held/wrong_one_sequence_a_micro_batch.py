"""A micro-batch has one sequence."""

CHANGE = """
-    found["activations"] = layout.rows * positions * (micro_batches * token + at_work)
+    found["activations"] = positions * (micro_batches * token + at_work)
"""
