"""What arrives is taken to have the shape of x: right where a boundary is as wide as the data."""

CHANGE = """
-        tensor = torch.empty(len(micro_batches[i][0]), width, dtype=torch.float64)
+        tensor = torch.empty_like(micro_batches[i][0])
"""
