"""The sum over ranks is one of float64, whatever was given."""

CHANGE = """
-    grad_x = grad_y @ weight
+    grad_x = grad_y @ weight
+    if dist.get_world_size() > 1:
+        grad_x = grad_x.double()
"""
