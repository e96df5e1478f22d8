"""One rank alone is thought of in stage 3 and divided by in the others."""

CHANGE = """
-    if collective == 0:
+    if collective == 0 and stage == 3:
"""
