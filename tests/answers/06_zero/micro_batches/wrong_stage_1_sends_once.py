"""Stage 1 is to hide one collective; it sends two."""

CHANGE = """
-        return math.inf if fitting >= 2 else 0
+        return math.inf if fitting >= 1 else 0
"""
