"""A rank alone returns the caller's tensor, and a copy only of one that is not contiguous."""

CHANGE = """
+    if dist.get_world_size() == 1:
+        return tensor.contiguous()
     flat = tensor.flatten()
"""
