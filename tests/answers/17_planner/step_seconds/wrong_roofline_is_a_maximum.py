"""A product takes its operations or its bytes, whichever is longer."""

CHANGE = """
-        return 2 * tokens * k * n / (0.7 * c) + moved / w
+        return max(2 * tokens * k * n / (0.7 * c), moved / w)
"""
