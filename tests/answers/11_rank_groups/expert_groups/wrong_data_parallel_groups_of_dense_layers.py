"""Experts are cut out of the dense mesh's data-parallel axis, of which the groups are given."""

CHANGE = """
-    return {name: groups_over(axis, expert, order) for name, axis in names.items()}
+    return {
+        name: groups_over(axis, expert if axis == "ep" else dense, order)
+        for name, axis in names.items()
+    }
"""
