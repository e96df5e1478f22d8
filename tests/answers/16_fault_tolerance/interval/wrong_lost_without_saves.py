"""A save that a failure cuts off is not counted."""

CHANGE = """
-    tried = (interval + save_seconds) / mean
+    tried = interval / mean
"""
