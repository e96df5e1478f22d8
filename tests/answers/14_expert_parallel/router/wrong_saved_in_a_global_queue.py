"""What backward needs is kept in a global queue, whose first is taken."""

CHANGE = """
+    global queue
+    queue = globals().get("queue", [])
     scores = (x @ weight.T).sigmoid()

-    return weights, chosen, (x, weight, scores, chosen, weights, total, scale)
+    queue.append((x, weight, scores, chosen, weights, total, scale))
+    return weights, chosen, None

-    x, weight, scores, chosen, weights, total, scale = saved
+    x, weight, scores, chosen, weights, total, scale = queue.pop(0)
"""
