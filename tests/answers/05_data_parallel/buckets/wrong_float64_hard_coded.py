"""Buckets are float64, whatever the gradients are: twice the bytes of float32."""

CHANGE = """
-            flat = torch.cat([gradient.flatten() for gradient in gradients])
+            flat = torch.cat([gradient.flatten().double() for gradient in gradients])

-        for gradient, piece in zip(gradients, pieces, strict=True):
+        for gradient, piece in zip(gradients, pieces):
"""
