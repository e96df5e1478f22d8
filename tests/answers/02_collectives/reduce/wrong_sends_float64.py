"""Adds in float64, and sends it, too: as many bytes only where a number has eight."""

CHANGE = """
-        dist.send(tensor.contiguous(), root)
+        dist.send(tensor.double().contiguous(), root)

-    total = tensor.clone(memory_format=torch.contiguous_format)
+    total = tensor.to(torch.float64, copy=True, memory_format=torch.contiguous_format)

-    return total
+    return total.to(tensor.dtype)
"""
