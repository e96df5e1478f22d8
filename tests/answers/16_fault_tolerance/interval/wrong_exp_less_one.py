"""e^x - 1 of a small x, by subtraction: half of its digits are gone."""

CHANGE = """
-    return interval / (mean * math.exp(restart_seconds / mean) * math.expm1(x))
+    return interval / (mean * math.exp(restart_seconds / mean) * (math.exp(x) - 1))
"""
