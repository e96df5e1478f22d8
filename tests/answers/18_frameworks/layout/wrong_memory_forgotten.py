"""The fastest of all, whether it fits or not."""

CHANGE = """
-            if max(stages) <= memory and MODEL.num_heads % one.tp == 0:
+            if MODEL.num_heads % one.tp == 0:
"""
