"""More than eight stages are never tried."""

CHANGE = """
-            for pp in divisors(math.gcd(ranks // tp, sizes.layers)):
+            for pp in divisors(math.gcd(ranks // tp, sizes.layers, 8)):
"""
