"""What is computed again takes no time."""

CHANGE = """
-    block = 3 * products + 3.5 * attention + 2 * small + full * (products + attention + small)
+    block = 3 * products + 3.5 * attention + 2 * small
"""
