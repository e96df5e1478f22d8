"""A blocking send down meets a blocking send up: both wait for ever."""

CHANGE = """
-    kept, sends, losses = {}, [], []
+    kept, losses = {}, []

-            sends.append((dist.isend(y, rank + 1), y))
+            dist.send(y, rank + 1)

-            sends.append((dist.isend(grad_x, rank - 1), grad_x))
+            dist.send(grad_x, rank - 1)

-    for pending, _ in sends:
-        pending.wait()
"""
