"""A group that is no larger than a host is taken to lie within one."""

CHANGE = """
-    if any(len(by_host) > 1 for by_host in hosts):
+    if n > machine.ranks_per_host:
"""
