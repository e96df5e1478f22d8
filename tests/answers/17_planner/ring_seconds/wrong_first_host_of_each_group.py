"""Of each group only the first host is looked at."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = min(next(iter(by_host.values())) for by_host in hosts)
"""
