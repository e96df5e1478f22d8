"""The rightmost axis of the order varies fastest, as in numpy."""

CHANGE = """
-        for axis in order.split("-"):
+        for axis in reversed(order.split("-")):
"""
