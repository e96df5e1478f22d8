"""The bubble has p turns."""

CHANGE = """
-    found["idle"] = (p - 1) / v * (block + sums) * num_blocks / p
+    found["idle"] = p / v * (block + sums) * num_blocks / p * (p > 1)
"""
