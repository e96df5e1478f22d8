"""inf and nan are looked for in the norm, whose squares overflow."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
+    bad = any(not gradient.norm().isfinite() for gradient in gradients)
"""
