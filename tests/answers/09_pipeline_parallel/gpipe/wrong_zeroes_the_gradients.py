"""A step sets the gradients to 0, though it has to add to what its caller has there."""

CHANGE = """
+    stage.zero_gradients()
     last = dist.get_rank() == dist.get_world_size() - 1
"""
