"""One call for each gradient, of which ranks have different numbers."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
-    overflow = torch.tensor(float(bad))
-    dist.all_reduce(overflow, dist.ReduceOp.MAX)
-    if overflow:
-        return False
+    for gradient in gradients:
+        overflow = (~gradient.isfinite().all()).float()
+        dist.all_reduce(overflow, dist.ReduceOp.MAX)
+        if overflow:
+            return False
"""
