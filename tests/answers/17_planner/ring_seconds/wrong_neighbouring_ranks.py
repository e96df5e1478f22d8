"""The cards are reckoned as if a group's ranks were neighbours."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = min(n, machine.ranks_per_host)
"""
