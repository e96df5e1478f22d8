"""No failure strikes during a save."""

CHANGE = """
-    x = (interval + save_seconds) / mean
+    x = interval / mean

-    return interval / (mean * math.exp(restart_seconds / mean) * math.expm1(x))
+    return interval / (save_seconds + mean * math.exp(restart_seconds / mean) * math.expm1(x))
"""
