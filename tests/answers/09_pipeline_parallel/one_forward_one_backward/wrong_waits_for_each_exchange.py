"""Output down and gradient up in one batch that is waited for: hangs when the warm-up is deep."""

LIKE = "right_batched_in_the_steady_state"
CHANGE = """
-    queue, leaving, loss = [], [], torch.zeros((), dtype=torch.float64)
+    queue, loss = [], torch.zeros((), dtype=torch.float64)

-        works = dist.batch_isend_irecv(ops) if ops else []
-        leaving.extend(zip(works, sends))
-        for pending in works[len(sends) :]:
+        for pending in dist.batch_isend_irecv(ops) if ops else []:

-    for pending, _ in leaving:
-        pending.wait()
"""
