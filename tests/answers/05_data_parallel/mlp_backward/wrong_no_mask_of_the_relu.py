"""Backward goes through the ReLU as if it were not there."""

CHANGE = """
-        grad = (grad @ weight) * (given > 0)
+        grad = grad @ weight
"""
