"""The host with the most ranks sets the pace."""

CHANGE = """
-        cards = min(count for by_host in hosts for count in by_host.values())
+        cards = max(count for by_host in hosts for count in by_host.values())
"""
