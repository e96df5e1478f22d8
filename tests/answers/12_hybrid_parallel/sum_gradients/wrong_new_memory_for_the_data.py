"""What is summed is a copy, which the tensor then takes for its data."""

CHANGE = """
     for gradient, placement in zip(gradients, placements, strict=True):
+        given = gradient
+        gradient = gradient.clone()

             dist.all_reduce(gradient, group=groups["embedding"])
+        given.data = gradient
"""
