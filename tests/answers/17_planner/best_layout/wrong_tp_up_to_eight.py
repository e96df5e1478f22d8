"""More than eight tensor-parallel ranks are never tried."""

CHANGE = """
-        for tp in divisors(math.gcd(ranks, sizes.heads)):
+        for tp in (each for each in divisors(math.gcd(ranks, sizes.heads)) if each <= 8):
"""
