"""Sends the gradients after every micro-batch, sums of sums included."""

CHANGE = """
         loss += share
+        for gradient in model.gradients():
+            dist.all_reduce(gradient)

-    for gradient in model.gradients():
-        dist.all_reduce(gradient)
"""
