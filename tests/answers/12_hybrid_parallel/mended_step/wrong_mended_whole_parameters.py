"""One error mended; no longer true: a partial gradient is not summed over tp."""

LIKE = "wrong_as_given"
CHANGE = """
-    for gradient in model.gradients:
+    for gradient, placement in zip(model.gradients, model.placements, strict=True):

         gradient /= num_micro_batches
+        if placement == "partial":
+            dist.all_reduce(gradient, group=groups["tp"])
"""
