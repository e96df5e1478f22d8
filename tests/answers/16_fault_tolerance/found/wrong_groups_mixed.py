"""Calls are numbered by rank alone, whatever their group."""

CHANGE = """
-        number = made[event.rank, event.group] = made.get((event.rank, event.group), 0) + 1
+        number = made[event.rank] = made.get(event.rank, 0) + 1
"""
