"""exp without taking the largest logit away: inf / inf for large logits."""

CHANGE = """
-    log_probabilities = x - x.logsumexp(dim=1, keepdim=True)
+    log_probabilities = (x.exp() / x.exp().sum(dim=1, keepdim=True)).log()
"""
