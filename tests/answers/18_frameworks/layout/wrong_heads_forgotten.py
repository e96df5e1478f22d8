"""Three tensor-parallel ranks for eight heads."""

CHANGE = """
-            if max(stages) <= memory and MODEL.num_heads % one.tp == 0:
+            if max(stages) <= memory:
"""
