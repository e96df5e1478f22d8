"""Gradients' messages hide behind all turns."""

CHANGE = """
-    turn = sum(found.values()) / (m + (p - 1) / v)
+    turn = sum(found.values())
"""
