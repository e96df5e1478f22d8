"""The order and the splits are kept in a global queue, whose first is taken."""

CHANGE = """
+    global queue
+    queue = globals().get("queue", [])
     n, numbers = dist.get_world_size(), chosen.flatten()

-    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
+    queue.append((order, sends, receives))
+    return rows, mine.repeat(n).repeat_interleave(counts), None

-    order, sends, receives = saved
+    order, sends, receives = queue.pop(0)
"""
