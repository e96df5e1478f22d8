"""The scale grows to 2^24 at most, as some libraries have it."""

CHANGE = """
-        return scale * growth, 0
+        return min(scale * growth, 2.0**24), 0
"""
