"""One rank alone returns the caller's tensor, where that is contiguous already."""

CHANGE = """
-    arrived = tensor.clone(memory_format=torch.contiguous_format)
+    arrived = tensor.contiguous()

     if world_size > 1:
+        arrived = torch.empty_like(arrived)
"""
