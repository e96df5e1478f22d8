"""The rule, one turn too early: what is made in this turn is used in it."""

LIKE = "right_the_youngest_first"
CHANGE = """
-            made.get(product, turn) + delay * (route[product.place] != r) < turn
+            made.get(product, turn + 1) + delay * (route[product.place] != r) <= turn

-                chosen[r] = late[r].pop()
+                chosen[r] = late[r].pop(0)
"""
