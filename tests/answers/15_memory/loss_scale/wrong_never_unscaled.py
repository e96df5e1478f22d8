"""The scale is never divided out."""

CHANGE = """
-    for gradient in gradients:
-        gradient.div_(scale)
-    optimizer.step(gradients)
+    optimizer.step(gradients)
"""
