"""The sums over dp go round the groups of tp."""

CHANGE = """
-    sent = ring_seconds(4 * n, groups["dp"], machine)
-    sent += ring_seconds((2 if at.zero else 4) * n, groups["dp"], machine)
+    sent = ring_seconds(4 * n, groups["tp"], machine)
+    sent += ring_seconds((2 if at.zero else 4) * n, groups["tp"], machine)
"""
