"""The rule, but a forward goes whether there is room or not."""

LIKE = "right_the_youngest_first"
CHANGE = """
-            if (
-                queues[r]
-                and arrived(queues[r][0], r)
-                and (queues[r][0][0] == "I" or held[r] < most)
-            ):
+            if queues[r] and arrived(queues[r][0], r):

-                chosen[r] = late[r].pop()
+                chosen[r] = late[r].pop(0)
"""
