"""The gradients come in the order in which backward finds them."""

CHANGE = """
-        gradients = [grad.T @ given, grad.sum(dim=0), *gradients]
+        gradients = [*gradients, grad.T @ given, grad.sum(dim=0)]
"""
