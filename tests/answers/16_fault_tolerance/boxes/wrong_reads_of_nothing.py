"""Boxes that touch but share nothing are read, too: slices of no numbers."""

CHANGE = """
-        if count and box not in seen:
+        if all(h.start <= h.stop for h in here) and box not in seen:
"""
