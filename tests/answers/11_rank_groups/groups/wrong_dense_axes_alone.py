"""Knows the four axes of the dense mesh, and passes over ep."""

CHANGE = """
-        for axis in order.split("-"):
+        for axis in (a for a in order.split("-") if a in ("tp", "cp", "dp", "pp")):
"""
