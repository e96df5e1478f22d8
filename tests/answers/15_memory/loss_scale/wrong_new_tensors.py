"""The divided gradients are new tensors: the caller's own keep the scale."""

CHANGE = """
-    for gradient in gradients:
-        gradient.div_(scale)
-    optimizer.step(gradients)
+    optimizer.step([gradient / scale for gradient in gradients])
"""
