"""W's rows are copied; b's slice is a view, which keeps all of b alive."""

CHANGE = """
-    return weight.chunk(world_size)[rank].clone(), bias.chunk(world_size)[rank].clone()
+    return weight.chunk(world_size)[rank].clone(), bias.chunk(world_size)[rank]
"""
