"""ZeRO is never tried."""

CHANGE = """
-                    ways = itertools.product(cuts, (0, 1), (False, True), ("none", "full"))
+                    ways = itertools.product(cuts, (0,), (False, True), ("none", "full"))
"""
