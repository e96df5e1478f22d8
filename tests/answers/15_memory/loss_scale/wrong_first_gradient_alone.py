"""Only the first gradient is looked at."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
+    bad = any(not gradient.isfinite().all() for gradient in gradients[:1])
"""
