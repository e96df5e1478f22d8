"""The first stage is taken for the fullest."""

CHANGE = """
-    return max(ends, key=lambda found: sum(found.values()))
+    return ends[0]
"""
