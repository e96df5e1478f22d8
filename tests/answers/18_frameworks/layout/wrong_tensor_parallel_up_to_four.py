"""tp of 8 is not tried, though eight heads allow it, and only it fits where memory is least."""

CHANGE = """
-            if max(stages) <= memory and MODEL.num_heads % one.tp == 0:
+            if max(stages) <= memory and one.tp in (1, 2, 4):
"""
