"""A group is thought to be spread evenly over its hosts."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = min(n / len(by_host) for by_host in hosts)
"""
