"""What a stage made itself is waited for as if it had travelled."""

LIKE = "right_the_youngest_first"
CHANGE = """
-        return all(
-            made.get(product, turn) + delay * (route[product.place] != r) < turn
-            for product in found
-        )
+        return all(made.get(product, turn) + delay < turn for product in found)

-                chosen[r] = late[r].pop()
+                chosen[r] = late[r].pop(0)
"""
