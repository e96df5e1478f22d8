"""The experts' backward runs for each rank's rows by themselves."""

CHANGE = """
-    grad_rows = experts_backward(grad_made)
+    grad_rows = torch.cat([experts_backward(one) for one in grad_made.split(receives)])
"""
