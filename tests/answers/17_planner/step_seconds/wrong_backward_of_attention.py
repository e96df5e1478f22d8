"""Backward of attention takes twice its forward."""

CHANGE = """
-    block = 3 * products + 3.5 * attention + 2 * small + full * (products + attention + small)
+    block = 3 * products + 3 * attention + 2 * small + full * (products + attention + small)
"""
