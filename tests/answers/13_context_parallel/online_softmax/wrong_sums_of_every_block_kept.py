"""Each block's own logarithm of a sum is kept for lse: little, and more with every block."""

CHANGE = """
             scores.new_zeros(len(scores), v.shape[1]),
+            [],
         )
-    before, total, weighted = state
+    before, total, weighted, sums = state

-    return largest, total, rescale * weighted + weights @ v
+    return largest, total, rescale * weighted + weights @ v, [*sums, scores.logsumexp(dim=1)]

-    largest, total, weighted = state
-    return weighted / total, (largest + total.log())[:, 0]
+    _, total, weighted, sums = state
+    return weighted / total, torch.stack(sums).logsumexp(dim=0)
"""
