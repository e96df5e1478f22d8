"""Adds the children's sums to the caller's tensor."""

CHANGE = """
-    total = tensor.clone(memory_format=torch.contiguous_format)

     children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < world_size]
+    total = tensor.contiguous()
"""
