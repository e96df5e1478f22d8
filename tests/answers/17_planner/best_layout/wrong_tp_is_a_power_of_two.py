"""Tensor-parallel ranks are a power of two."""

CHANGE = """
-        for tp in divisors(math.gcd(ranks, sizes.heads)):
+        for tp in divisors(math.gcd(ranks, sizes.heads, 1024)):
"""
