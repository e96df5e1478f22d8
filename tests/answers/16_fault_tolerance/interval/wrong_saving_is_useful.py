"""The seconds of a save are counted as work."""

CHANGE = """
-    return interval / (mean * math.exp(restart_seconds / mean) * math.expm1(x))
+    return (interval + save_seconds) / (
+        mean * math.exp(restart_seconds / mean) * math.expm1(x)
+    )
"""
