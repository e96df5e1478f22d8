"""A product takes its operations alone, not its bytes."""

CHANGE = """
-        return 2 * tokens * k * n / (0.7 * c) + moved / w
+        return 2 * tokens * k * n / (0.7 * c)
"""
