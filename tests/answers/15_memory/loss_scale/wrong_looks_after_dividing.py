"""What is looked at has been divided already: a scale below 1 makes inf of what was finite."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
+    for gradient in gradients:
+        gradient.div_(scale)
+    bad = any(not gradient.isfinite().all() for gradient in gradients)

-    for gradient in gradients:
-        gradient.div_(scale)
-    optimizer.step(gradients)
+    optimizer.step(gradients)
"""
