"""The optimizer is called in every step, and the answer is True or False as asked."""

CHANGE = """
-    if overflow:
-        return False
-    for gradient in gradients:
-        gradient.div_(scale)
-    optimizer.step(gradients)
-    return True
+    for gradient in gradients:
+        gradient.div_(scale)
+    optimizer.step(gradients)
+    return not overflow
"""
