"""Of a token's k experts only the first one is visited."""

CHANGE = """
+    chosen = chosen[:, :1]
     n, numbers = dist.get_world_size(), chosen.flatten()

+    weights = weights[:, :1]
     order, sends, receives = saved
"""
