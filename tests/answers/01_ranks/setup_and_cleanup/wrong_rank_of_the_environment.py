"""Ignores its arguments: torch reads RANK and WORLD_SIZE, which may say something else."""

CHANGE = """
-    dist.init_process_group("gloo", rank=rank, world_size=world_size)
+    dist.init_process_group("gloo")
"""
