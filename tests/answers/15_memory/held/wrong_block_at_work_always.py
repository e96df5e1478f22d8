"""A whole block more is counted without recomputation, too."""

CHANGE = """
-    at_work = whole if layout.recompute == "full" else 0
+    at_work = 0 if layout.recompute == "none" else whole
"""
