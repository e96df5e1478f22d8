"""A micro-batch is always one sequence."""

CHANGE = """
-                for rows in divisors(each) if not more else []:
+                for rows in [1] if not more else []:
"""
