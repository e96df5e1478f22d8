"""The sum over replicas is divided by their number."""

CHANGE = """
         dist.all_reduce(gradient, group=groups["dp"])
+        gradient /= dist.get_world_size(groups["dp"])
"""
