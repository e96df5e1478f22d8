"""gradient.data gets new memory: other names for the same gradient keep the scale."""

CHANGE = """
-        gradient.div_(scale)
+        gradient.data = gradient.data / scale
"""
