"""Boxes share something as soon as they do along the first dimension."""

CHANGE = """
-            count *= max(0, last - first)
+            count *= abs(last - first)

-        if count and box not in seen:
+        if here[0].stop > here[0].start and box not in seen:
"""
