"""A ring that leaves its host goes through one card."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = min(machine.card, machine.inside)
"""
