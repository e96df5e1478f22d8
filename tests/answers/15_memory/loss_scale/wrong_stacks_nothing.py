"""Flags are stacked, and a rank without gradients has none to stack."""

CHANGE = """
-    bad = any(not gradient.isfinite().all() for gradient in gradients)
-    overflow = torch.tensor(float(bad))
+    overflow = torch.stack([~gradient.isfinite().all() for gradient in gradients]).any().float()
"""
