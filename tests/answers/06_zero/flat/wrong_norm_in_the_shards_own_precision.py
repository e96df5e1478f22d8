"""Squares are summed in the shard's dtype: of float32 the sum is not one of float64."""

CHANGE = """
-    square = real.double().square().sum()
+    square = real.square().sum()
"""
