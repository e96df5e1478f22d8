"""The order and the splits are kept in a global: those of the journey begun last."""

CHANGE = """
+    global plan
     n, numbers = dist.get_world_size(), chosen.flatten()

-    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
+    plan = order, sends, receives
+    return rows, mine.repeat(n).repeat_interleave(counts), None

-    order, sends, receives = saved
+    order, sends, receives = plan
"""
