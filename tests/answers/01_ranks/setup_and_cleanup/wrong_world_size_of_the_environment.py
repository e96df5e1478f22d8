"""The rank is its argument, but how many ranks there are it takes from the environment."""

CHANGE = """
-    dist.init_process_group("gloo", rank=rank, world_size=world_size)
+    of = int(os.environ["WORLD_SIZE"])
+    dist.init_process_group("gloo", rank=rank, world_size=of)
"""
