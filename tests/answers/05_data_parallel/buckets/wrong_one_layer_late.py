"""Sends a bucket only after the layer below it has run."""

CHANGE = """
-    complete_at = {bucket[-1]: bucket for bucket in buckets}
+    complete_at = {max(bucket[-1] - 1, 0): bucket for bucket in buckets}

-        pieces = flat.split([gradient.numel() for gradient in gradients])
-        for gradient, piece in zip(gradients, pieces, strict=True):
+        for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
"""
