"""Each of n - 1 messages has all bytes."""

CHANGE = """
-    return (n - 1) * (num_bytes / n / rate + ALPHA)
+    return (n - 1) * (num_bytes / rate + ALPHA)
"""
