"""Attention's square is over all tokens of a micro-batch."""

CHANGE = """
-    attention = 2 * at.rows * positions**2 * d / t / (0.3 * c)
+    attention = 2 * tokens**2 * d / t / (0.3 * c)
"""
