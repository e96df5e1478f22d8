"""Gradients are divided by the number of micro-batches, though the loss was a mean already."""

CHANGE = """
-    for (grad_y, saved), (x, _) in zip(kept, micro_batches, strict=True):
+    for (grad_y, saved), (x, _) in zip(kept, micro_batches):

         backward_stage(stage, grad_y, saved, len(x), width)
+    for gradient in stage.gradients():
+        gradient /= len(micro_batches)
"""
