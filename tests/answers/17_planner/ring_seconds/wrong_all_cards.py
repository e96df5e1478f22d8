"""Every group has all cards of a host."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = min(machine.ranks_per_host * machine.card, machine.inside)
"""
