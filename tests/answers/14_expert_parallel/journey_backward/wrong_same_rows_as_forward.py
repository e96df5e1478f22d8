"""What experts made travels on, in place of a gradient."""

CHANGE = """
-    leaving = weights.flatten()[order, None] * grad_y[tokens]
+    leaving = weights.flatten()[order, None] * returned
"""
