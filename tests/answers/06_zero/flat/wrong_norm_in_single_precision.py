"""Squares are summed in float32: four bytes, and half the digits."""

CHANGE = """
-    square = real.double().square().sum()
+    square = real.float().square().sum()
"""
