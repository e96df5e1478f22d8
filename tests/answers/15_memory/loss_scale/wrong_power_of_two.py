"""The scale is taken for a power of two."""

CHANGE = """
-        gradient.div_(scale)
+        gradient.mul_(2.0 ** -round(math.log2(scale)))
"""
