"""nan is no inf."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
+    bad = any(gradient.isinf().any() for gradient in gradients)
"""
