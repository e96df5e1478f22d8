"""Who idles waits for computing alone."""

CHANGE = """
-    found["idle"] = (p - 1) / v * (block + sums) * num_blocks / p
+    found["idle"] = (p - 1) / v * block * num_blocks / p
"""
