"""The warm-up asks for as many micro-batches as there are stages behind, though there are fewer."""

LIKE = "wrong_waits_for_micro_batches_that_never_come"
CHANGE = """
-        tensor = torch.empty(len(micro_batches[min(i, count - 1)][0]), width, dtype=torch.float64)
+        tensor = torch.empty(len(micro_batches[i][0]), width, dtype=torch.float64)

-        x, labels = micro_batches[min(i, count - 1)]
+        x, labels = micro_batches[i]

-    for i in range(max(0, count - warm_up), count):
+    for i in range(count - warm_up, count):
"""
