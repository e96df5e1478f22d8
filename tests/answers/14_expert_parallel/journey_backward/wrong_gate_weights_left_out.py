"""The gradient leaves without the weights that forward multiplied by."""

CHANGE = """
-    leaving = weights.flatten()[order, None] * grad_y[tokens]
+    leaving = grad_y[tokens]
"""
