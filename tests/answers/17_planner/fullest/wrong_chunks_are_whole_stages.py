"""Each chunk in flight is held as a whole stage."""

CHANGE = """
-        f = min(p - s, m) if v == 1 else min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v) / v
+        f = min(p - s, m) if v == 1 else min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v)
"""
