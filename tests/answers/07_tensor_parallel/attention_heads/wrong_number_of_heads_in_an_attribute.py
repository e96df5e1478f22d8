"""Backward takes the number of heads from an attribute of heads_forward."""

CHANGE = """
-    own_heads = num_heads // dist.get_world_size()
+    own_heads = heads_forward.own = num_heads // dist.get_world_size()

-    own_heads = saved_heads[0].shape[1]
+    own_heads = heads_forward.own
"""
