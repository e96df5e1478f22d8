"""Sums in float64 whatever the gradients' dtype: twice the bytes for float32."""

CHANGE = """
     for gradient, placement in zip(gradients, placements, strict=True):
+        given = gradient
+        gradient = gradient.to(torch.float64, copy=True)

             dist.all_reduce(gradient, group=groups["embedding"])
+        given.copy_(gradient)
"""
