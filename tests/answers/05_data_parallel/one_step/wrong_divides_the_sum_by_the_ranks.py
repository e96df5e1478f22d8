"""Divides by the number of ranks what was divided by the global batch."""

CHANGE = """
         dist.all_reduce(gradient)
+        gradient /= dist.get_world_size()
"""
