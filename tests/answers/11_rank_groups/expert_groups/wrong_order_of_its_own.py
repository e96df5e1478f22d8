"""The experts have an order of their own."""

CHANGE = """
-    return {name: groups_over(axis, expert, order) for name, axis in names.items()}
+    return {name: groups_over(axis, expert, "tp-ep-cp-dp-pp") for name, axis in names.items()}
"""
