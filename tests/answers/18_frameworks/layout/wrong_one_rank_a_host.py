"""Every rank has a link of its own, whatever the statement says of hosts."""

CHANGE = """
-    machine, found = machine_of(rate, ranks_per_host), []
+    machine, found = machine_of(rate), []
"""
