"""steps go on after the scale has grown, and it grows no more."""

CHANGE = """
-        return scale * growth, 0
+        return scale * growth, steps + 1
"""
