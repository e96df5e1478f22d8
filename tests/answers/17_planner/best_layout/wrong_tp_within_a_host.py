"""Tensor parallelism never leaves its host."""

CHANGE = """
-        for tp in divisors(math.gcd(ranks, sizes.heads)):
+        for tp in divisors(math.gcd(ranks, sizes.heads, question.machine.ranks_per_host)):
"""
