"""The rule, but every weight half is that of chunk 0."""

LIKE = "right_the_youngest_first"
CHANGE = """
-                chosen[r] = late[r].pop()
+                chosen[r] = late[r].pop(0)

-                late[r].append(("W", i, c))
+                late[r].append(("W", i, 0))
"""
