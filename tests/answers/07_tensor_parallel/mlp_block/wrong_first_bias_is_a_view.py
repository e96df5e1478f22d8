"""A and B are copied; a's slice is a view, which keeps all of a alive."""

CHANGE = """
-        first_bias.chunk(world_size)[rank].clone(),
+        first_bias.chunk(world_size)[rank],
"""
