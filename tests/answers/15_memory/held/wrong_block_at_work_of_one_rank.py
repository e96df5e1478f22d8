"""The block at work is counted as if nothing split it."""

CHANGE = """
-    at_work = whole if layout.recompute == "full" else 0
+    at_work = 34 * d + 5 * heads * positions if layout.recompute == "full" else 0
"""
