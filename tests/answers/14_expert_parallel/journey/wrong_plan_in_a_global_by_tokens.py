"""Plans are kept in a global by the id of x: two layers with the same x share one."""

CHANGE = """
+    global plans
+    plans = globals().get("plans", {})
     n, numbers = dist.get_world_size(), chosen.flatten()

-    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
+    plans[id(x)] = order, sends, receives
+    return rows, mine.repeat(n).repeat_interleave(counts), id(x)

-    order, sends, receives = saved
+    order, sends, receives = plans[saved]
"""
