"""steps go on after an overflow."""

CHANGE = """
-        return scale * backoff, 0
+        return scale * backoff, steps
"""
