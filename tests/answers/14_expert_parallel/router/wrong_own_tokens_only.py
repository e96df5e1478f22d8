"""Each rank has the gradient of its own tokens' terms."""

CHANGE = """
-    dist.all_reduce(grad_weight)
"""
