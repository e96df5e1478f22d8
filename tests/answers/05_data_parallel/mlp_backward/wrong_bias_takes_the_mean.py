"""The gradient of the bias is a mean over rows, not a sum."""

CHANGE = """
-        gradients = [grad.T @ given, grad.sum(dim=0), *gradients]
+        gradients = [grad.T @ given, grad.mean(dim=0), *gradients]
"""
