"""The result lies in a buffer that is kept for the next call of the same shape."""

CHANGE = """
-    total = tensor.clone(memory_format=torch.contiguous_format)
+    kept = tree_all_reduce.__dict__
+    total = kept.setdefault(tensor.shape, torch.empty(tensor.shape, dtype=tensor.dtype))
+    total.copy_(tensor)
"""
