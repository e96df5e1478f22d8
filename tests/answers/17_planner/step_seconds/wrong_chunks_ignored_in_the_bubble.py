"""Chunks do not make the bubble smaller."""

CHANGE = """
-    found["idle"] = (p - 1) / v * (block + sums) * num_blocks / p
+    found["idle"] = (p - 1) * (block + sums) * num_blocks / p
"""
