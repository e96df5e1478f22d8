"""The router gets a gradient of zero."""

CHANGE = """
-    grad_weights[order] = (grad_y[tokens] * returned).sum(dim=1)
"""
