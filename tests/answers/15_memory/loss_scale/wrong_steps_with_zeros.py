"""A step with gradients of 0 in place of a skipped one: averages move on."""

CHANGE = """
-    if overflow:
-        return False
-    for gradient in gradients:
-        gradient.div_(scale)
-    optimizer.step(gradients)
-    return True
+    for gradient in gradients:
+        gradient.div_(scale)
+        if overflow:
+            gradient.zero_()
+    if gradients:
+        optimizer.step(gradients)
+    return not overflow
"""
