"""Attention works on the whole square."""

CHANGE = """
-    attention = 2 * at.rows * positions**2 * d / t / (0.3 * c)
+    attention = 4 * at.rows * positions**2 * d / t / (0.3 * c)
"""
