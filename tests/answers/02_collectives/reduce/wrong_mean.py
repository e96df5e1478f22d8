"""A mean where a sum is asked."""

CHANGE = """
-    return total
+    return total / world_size
"""
