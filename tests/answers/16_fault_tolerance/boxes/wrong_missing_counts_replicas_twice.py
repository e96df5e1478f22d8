"""A replica is not read again, but takes its numbers off those that are missing."""

CHANGE = """
-            missing -= count
+            missing -= count * saved.count(box)
"""
