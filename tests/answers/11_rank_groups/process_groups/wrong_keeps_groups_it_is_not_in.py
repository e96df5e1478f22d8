"""The last group of each name is kept, whether this rank is in it or not."""

CHANGE = """
-            if dist.get_rank() in ranks:
+            if name not in mine or dist.get_rank() in ranks:
"""
