"""Of each group only the last host is looked at."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = min(by_host[max(by_host)] for by_host in hosts)
"""
