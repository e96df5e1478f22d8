"""The ring goes round in n rounds."""

CHANGE = """
-    return (n - 1) * (num_bytes / n / rate + ALPHA)
+    return n * (num_bytes / n / rate + ALPHA)
"""
