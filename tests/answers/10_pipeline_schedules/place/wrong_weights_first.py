"""In each turn a W goes before anything else."""

LIKE = "right_the_youngest_first"
CHANGE = """
-            if (
-                queues[r]
-                and arrived(queues[r][0], r)
-                and (queues[r][0][0] == "I" or held[r] < most)
-            ):
+            if late[r]:
+                chosen[r] = late[r].pop(0)
+            elif queues[r] and arrived(queues[r][0], r):

-            elif late[r]:
-                chosen[r] = late[r].pop()
"""
