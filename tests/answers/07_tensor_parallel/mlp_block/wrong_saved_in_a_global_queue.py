"""What backward needs is kept in a global queue, whose first is taken."""

CHANGE = """
+    global queue
+    queue = globals().get("queue", [])
     first, first_bias, second, second_bias = shard

-    return y + second_bias, (x, hidden)
+    queue.append((x, hidden))
+    return y + second_bias, None

-    x, hidden = saved
+    x, hidden = queue.pop(0)
"""
