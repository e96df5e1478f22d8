"""The sums are new tensors; the caller's gradients stay as they were."""

CHANGE = """
     for gradient, placement in zip(gradients, placements, strict=True):
+        gradient = gradient.clone()
"""
