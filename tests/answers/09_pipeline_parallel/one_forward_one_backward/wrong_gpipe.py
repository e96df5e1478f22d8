"""All forwards, then all backwards: every micro-batch is in flight at once."""

CHANGE = """
-    warm_up = min(depth * (last - rank), count)

-        if i >= warm_up:
-            backward(i - warm_up)
-    for i in range(count - warm_up, count):
+    for i in range(count):
"""
