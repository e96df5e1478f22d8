"""Each micro-batch goes down and up before the next begins: right values, no pipeline."""

CHANGE = """
-    kept, loss = [], 0
+    loss = 0

-        kept.append((grad_y, saved))
-    for (grad_y, saved), (x, _) in zip(kept, micro_batches, strict=True):
"""
