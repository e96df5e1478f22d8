"""The sums are kept in a global: two softmaxes at a time, and they are one."""

CHANGE = '''
 def add_block(state, scores: torch.Tensor, v: torch.Tensor):
     """The state after another block: scores [s, t] of s queries by t keys, and v [t, d]."""
+    global kept
     if state is None:
         state = (

-    before, total, weighted = state
+        kept = state
+    before, total, weighted = kept

     total = rescale * total + weights.sum(dim=1, keepdim=True)
-    return largest, total, rescale * weighted + weights @ v
+    kept = largest, total, rescale * weighted + weights @ v
+    return kept
'''
