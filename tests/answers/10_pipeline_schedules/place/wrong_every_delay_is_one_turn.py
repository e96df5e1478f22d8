"""A message with a delay takes one turn, however many they are."""

CHANGE = """
-            travel = delay if route[product.place] != stage else 0
+            travel = (delay > 0) if route[product.place] != stage else 0
"""
