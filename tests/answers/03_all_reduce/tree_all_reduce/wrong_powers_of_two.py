"""Takes it for granted that a rank has two children or none."""

CHANGE = """
-    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < world_size]
+    children = [2 * rank + 1, 2 * rank + 2] if 2 * rank + 2 < world_size else []
"""
