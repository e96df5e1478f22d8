"""The scale grows one step late."""

CHANGE = """
-    if steps + 1 == every:
+    if steps == every:
"""
