"""Adds in float64, and sends that: twice the bytes of a float32."""

CHANGE = """
-    total = tensor.flatten().clone()
+    total = tensor.flatten().to(torch.float64, copy=True)

-    return total.reshape(tensor.shape)
+    return total.reshape(tensor.shape).to(tensor.dtype)
"""
