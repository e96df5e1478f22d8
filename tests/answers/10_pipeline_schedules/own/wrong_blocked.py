"""Stage 0 waits for a gradient that needs its own next forward."""

CHANGE = """
             possible[kind, i, after] = end + send * (route[after] != stage)
+    orders[0].insert(0, orders[0].pop(next(n for n, a in enumerate(orders[0]) if a[0] == "I")))
"""
