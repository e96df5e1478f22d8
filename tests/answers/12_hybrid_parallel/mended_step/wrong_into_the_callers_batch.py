"""All five mended, but the first rank's rows are received into the caller's batch."""

CHANGE = """
-    x = tokens.tensor_split(num_replicas)[replica].clone()
-    y = targets.tensor_split(num_replicas)[replica].clone()
+    x = tokens.tensor_split(num_replicas)[replica]
+    y = targets.tensor_split(num_replicas)[replica]
"""
