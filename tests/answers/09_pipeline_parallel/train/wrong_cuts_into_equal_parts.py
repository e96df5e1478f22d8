"""The rows are spread over the micro-batches: all have about as many, and fewer than num_rows."""

CHANGE = """
-        micro_batches = list(zip(x.split(num_rows), labels.split(num_rows), strict=True))
+        count = -(-len(x) // num_rows)
+        micro_batches = list(zip(x.tensor_split(count), labels.tensor_split(count), strict=True))
"""
