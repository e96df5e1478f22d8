"""The weights are multiplied in at home: grad_x is right, the experts' own gradients are not."""

CHANGE = """
-    leaving = weights.flatten()[order, None] * grad_y[tokens]
+    leaving = grad_y[tokens]

     dist.all_to_all_single(back, grad_rows, sends, receives)
+    back = weights.flatten()[order, None] * back
"""
