"""A is copied; B's columns are a view, which keeps all of B alive."""

CHANGE = """
-        second.chunk(world_size, dim=1)[rank].clone(),
+        second.chunk(world_size, dim=1)[rank],
"""
