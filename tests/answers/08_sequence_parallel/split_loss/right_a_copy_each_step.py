"""Nothing is done in place: five times this rank's logits at the peak."""

CHANGE = """
-    exponentials = shifted.exp_()
+    exponentials = (logits - largest[:, None]).exp()

-    grad = exponentials.div_(sums[0][:, None])
+    grad = exponentials / sums[0][:, None]

-    return loss, grad.mul_(counts[:, None]).div_(number)
+    return loss, grad * counts[:, None] / number
"""
