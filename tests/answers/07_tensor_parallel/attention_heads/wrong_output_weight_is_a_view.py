"""W is copied; V's columns are a view, which keeps all of V alive."""

CHANGE = """
-        out.chunk(world_size, dim=1)[rank].clone(),
+        out.chunk(world_size, dim=1)[rank],
"""
