"""All messages together start once."""

CHANGE = """
-    return (n - 1) * (num_bytes / n / rate + ALPHA)
+    return (n - 1) * num_bytes / n / rate + ALPHA
"""
