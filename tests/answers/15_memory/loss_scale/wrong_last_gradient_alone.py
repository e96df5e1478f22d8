"""The last gradient is looked at, and not the others: a name left over from a loop."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
-    overflow = torch.tensor(float(bad))
+    bad = False
+    for gradient in gradients:
+        bad = not gradient.isfinite().all()
+    overflow = torch.tensor(float(bad))
"""
