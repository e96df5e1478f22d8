"""The block that backward is at is forgotten."""

CHANGE = """
-    at_work = whole if layout.recompute == "full" else 0
+    at_work = 0
"""
