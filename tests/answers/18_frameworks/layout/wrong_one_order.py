"""Only the order that comes without asking."""

CHANGE = """
-    for layout in [one for order in ORDERS for one in layouts(num_ranks, order)]:
+    for layout in layouts(num_ranks):
"""
