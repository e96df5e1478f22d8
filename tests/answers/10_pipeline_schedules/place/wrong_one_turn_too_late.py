"""The rule, one turn too late: a message is under way one turn longer."""

LIKE = "right_the_youngest_first"
CHANGE = """
-            made.get(product, turn) + delay * (route[product.place] != r) < turn
+            made.get(product, turn) + (delay + 1) * (route[product.place] != r) < turn
"""
