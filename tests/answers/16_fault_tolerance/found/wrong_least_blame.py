"""The straggler is said to be the rank that waited most."""

CHANGE = """
-    return max(found, key=lambda rank: found[rank])
+    return min(found, key=lambda rank: found[rank])
"""
