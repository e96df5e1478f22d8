"""Of two stages that hold as much, the last is returned."""

CHANGE = """
-    return max(ends, key=lambda found: sum(found.values()))
+    return max(ends[::-1], key=lambda found: sum(found.values()))
"""
