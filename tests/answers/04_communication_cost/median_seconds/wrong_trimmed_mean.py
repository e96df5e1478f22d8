"""The mean without the fastest and the slowest: one bad repetition of five still counts."""

CHANGE = """
-    return seconds.median().item()
+    return seconds.sort().values[1:-1].mean().item()
"""
