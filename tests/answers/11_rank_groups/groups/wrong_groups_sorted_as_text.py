"""The groups come sorted by the decimal digits of their first rank."""

CHANGE = """
-    return list(groups.values())
+    return sorted(groups.values(), key=str)
"""
