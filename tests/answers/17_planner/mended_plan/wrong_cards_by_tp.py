"""Cards are reckoned from tp, however few replicas there are."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = machine.ranks_per_host // at.tp
"""
