"""A turn is a micro-batch's share of the whole, bubble included."""

CHANGE = """
-    turn = sum(found.values()) / (m + (p - 1) / v)
+    turn = sum(found.values()) / m
"""
