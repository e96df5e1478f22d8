"""Only the first group that leaves its host is looked at."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = min(next(by_host for by_host in hosts if len(by_host) > 1).values())
"""
