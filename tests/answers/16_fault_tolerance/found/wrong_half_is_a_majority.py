"""Half of a group is enough to be right."""

CHANGE = """
-            sure = 2 * values.count(right) > len(group)
+            sure = 2 * values.count(right) >= len(group)
"""
