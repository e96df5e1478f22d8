"""States wait in a global queue, and the first of them is taken: right while all take turns."""

CHANGE = """
+waiting = []
+
+
 def add_block(state, scores: torch.Tensor, v: torch.Tensor):

             scores.new_zeros(len(scores), v.shape[1]),
         )
+    else:
+        state = waiting.pop(0)
     before, total, weighted = state

-    return largest, total, rescale * weighted + weights @ v
+    waiting.append((largest, total, rescale * weighted + weights @ v))
+    return len(waiting)

-    largest, total, weighted = state
+    largest, total, weighted = waiting.pop(0)
"""
