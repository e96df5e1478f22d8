"""Cards may be together faster than the host's own links."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = cards * machine.card
"""
