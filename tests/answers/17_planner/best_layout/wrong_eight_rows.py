"""A micro-batch has at most eight sequences."""

CHANGE = """
-                for rows in divisors(each) if not more else []:
+                for rows in filter(lambda b: b <= 8, divisors(each)) if not more else []:
"""
