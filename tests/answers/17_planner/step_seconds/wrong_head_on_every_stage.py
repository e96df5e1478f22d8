"""The head is shared out over the stages."""

CHANGE = """
-    found = {"computing": m * (num_blocks / p * block + head), "tp": m * num_blocks / p * sums}
+    found = {"computing": m * (num_blocks * block + head) / p, "tp": m * num_blocks / p * sums}
"""
