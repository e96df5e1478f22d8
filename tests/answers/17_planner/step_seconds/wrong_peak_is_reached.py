"""Products reach the peak of the data sheet."""

CHANGE = """
-        return 2 * tokens * k * n / (0.7 * c) + moved / w
+        return 2 * tokens * k * n / c + moved / w
"""
