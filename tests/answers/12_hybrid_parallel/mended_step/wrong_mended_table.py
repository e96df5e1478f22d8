"""One error mended; no longer true: the tied table is not summed over embedding."""

LIKE = "wrong_as_given"
CHANGE = """
-    for gradient in model.gradients:
+    for gradient, placement in zip(model.gradients, model.placements, strict=True):

         dist.all_reduce(gradient, group=groups["dp"])
+        if placement == "tied":
+            dist.all_reduce(gradient, group=groups["embedding"])
"""
