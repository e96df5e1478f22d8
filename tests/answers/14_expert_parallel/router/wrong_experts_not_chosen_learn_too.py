"""Every expert has a gradient, the ones that were not chosen, too."""

CHANGE = """
-    grad_scores = torch.zeros_like(scores).scatter(1, chosen, grad_picked)
+    grad_scores = (-mean / total).expand_as(scores).scatter(1, chosen, grad_picked)
"""
