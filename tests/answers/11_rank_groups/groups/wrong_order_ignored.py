"""tp is always innermost and pp outermost, whatever the order says."""

CHANGE = """
-        for axis in order.split("-"):
-            rest, place = divmod(rest, sizes[axis])
+        for axis in ("tp", "cp", "ep", "dp", "pp"):
+            rest, place = divmod(rest, sizes.get(axis, 1))
"""
