"""An all-reduce's time."""

CHANGE = """
-    return (n - 1) * (num_bytes / n / rate + ALPHA)
+    return 2 * (n - 1) * (num_bytes / n / rate + ALPHA)
"""
