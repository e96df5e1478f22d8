"""Every group that leaves its host has one card."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = machine.card
"""
