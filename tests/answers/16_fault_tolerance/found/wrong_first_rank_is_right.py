"""All are compared with the first rank of their group."""

CHANGE = """
-            right = max(values, key=values.count)
+            right = values[0]
"""
