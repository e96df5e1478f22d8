"""The list of gradients is a default argument, so the second batch finds the first one's in it."""

CHANGE = """
-    grad_y: torch.Tensor, saved: list, shards: list, shapes: list
+    grad_y: torch.Tensor, saved: list, shards: list, shapes: list, gradients=[]

-    world_size, gradients = dist.get_world_size(), []
+    world_size = dist.get_world_size()

-        gradients.append(mine)
+        gradients.insert(0, mine)

-    return grad_y, gradients[::-1]
+    return grad_y, gradients
"""
