"""Adds in float64, and sends that: twice the bytes of a float32."""

CHANGE = """
-    total = tensor.clone(memory_format=torch.contiguous_format)
+    total = tensor.contiguous().to(torch.float64, copy=True)

-    return total
+    return total.to(tensor.dtype)
"""
