"""Sequence parallelism is thought of in blocks alone."""

CHANGE = """
-    token = blocks * block + first * d / u + last * (4 * d / u + 6 * vocabulary / t)
+    token = blocks * block + first * d + last * (4 * d + 6 * vocabulary / t)
"""
