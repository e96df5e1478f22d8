"""ZeRO-1 gathers gradients, not weights of two bytes."""

CHANGE = """
-    sent += ring_seconds((2 if at.zero else 4) * n, groups["dp"], machine)
+    sent += ring_seconds(4 * n, groups["dp"], machine)
"""
