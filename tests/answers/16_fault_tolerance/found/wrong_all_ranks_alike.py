"""All ranks are taken for replicas of each other."""

CHANGE = """
-        for group in groups:
+        for group in [sorted(rank for group in groups for rank in group)]:
"""
