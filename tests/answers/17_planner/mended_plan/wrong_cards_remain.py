"""Two mistakes are mended, not the cards of a group."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = min(machine.ranks_per_host * machine.card, machine.inside)
"""
