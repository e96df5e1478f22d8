"""Counts on, and gives up at a hundred."""

CHANGE = """
-    return max(0, math.floor(fitting - 1 if stage == 2 else fitting / 3))
+    found = max(0, math.floor(fitting - 1 if stage == 2 else fitting / 3))
+    return found if found <= 100 else math.inf
"""
