"""The head and the loss are forgotten."""

CHANGE = """
-    found = {"computing": m * (num_blocks / p * block + head), "tp": m * num_blocks / p * sums}
+    found = {"computing": m * num_blocks / p * block, "tp": m * num_blocks / p * sums}
"""
