"""The one-hot rows are float32: with bfloat16 weights, so is all that follows."""

CHANGE = """
-    grad = log_probabilities.exp()
-    grad[rows, labels] -= 1
-    grad /= global_batch
+    hot = F.one_hot(labels, x.shape[1]).float()
+    grad = (log_probabilities.exp() - hot) / global_batch

-        gradients = [grad.T @ given, grad.sum(dim=0), *gradients]
-        grad = (grad @ weight) * (given > 0)
+        gradients = [grad.T @ given.to(grad.dtype), grad.sum(dim=0), *gradients]
+        grad = (grad @ weight.to(grad.dtype)) * (given > 0)
"""
