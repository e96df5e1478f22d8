"""The link's rate is the one of the example."""

CHANGE = """
-    collective = num_bytes * (world_size - 1) / world_size / bytes_per_second
+    collective = num_bytes * (world_size - 1) / world_size / 1e9
"""
