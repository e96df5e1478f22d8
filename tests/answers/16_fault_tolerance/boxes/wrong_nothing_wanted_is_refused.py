"""No read at all is taken for numbers that are missing, also where nothing is wanted."""

CHANGE = """
-    if missing:
+    if not found or missing:
"""
