"""As many micro-batches as stages, even where there are fewer."""

CHANGE = """
-        f = min(p - s, m) if v == 1 else min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v) / v
+        f = p - s if v == 1 else (2 * (p - 1 - s) + (v - 1) * p + 1) / v
"""
