"""Calls each layer with named arguments, and nobody where a rank is alone."""

CHANGE = """
-        grad_y = layers[number].backward(grad_y, saved[number])
-        if number in complete_at:
+        grad_y = layers[number].backward(grad_y=grad_y, saved=saved[number])
+        if number in complete_at and dist.get_world_size() > 1:
"""
