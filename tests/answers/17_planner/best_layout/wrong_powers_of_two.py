"""Degrees are powers of two."""

CHANGE = """
-        return [each for each in range(1, number + 1) if number % each == 0]
+        return [each for each in (2**k for k in range(12)) if number % each == 0]
"""
