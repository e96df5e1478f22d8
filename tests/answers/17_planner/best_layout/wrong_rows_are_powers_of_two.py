"""A micro-batch has a power of two of sequences."""

CHANGE = """
-                for rows in divisors(each) if not more else []:
+                for rows in filter(lambda b: b & (b - 1) == 0, divisors(each)) if not more else []:
"""
