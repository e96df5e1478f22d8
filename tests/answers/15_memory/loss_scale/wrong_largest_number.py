"""The largest number of all ranks: a nan is not larger than anything, and -inf is forgotten."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
-    overflow = torch.tensor(float(bad))
+    overflow = torch.tensor(max((float(g.max()) for g in gradients), default=0.0))

-    if overflow:
+    if overflow == math.inf or overflow != overflow:
"""
