"""Sends each bucket in time, and waits for it at once."""

CHANGE = """
-            travelling.append((dist.all_reduce(flat, async_op=True), flat, gradients))
-    for pending, flat, gradients in travelling:
-        pending.wait()
+            dist.all_reduce(flat)
+            travelling.append((flat, gradients))
+    for flat, gradients in travelling:
"""
