"""A rank that is late because it waited is blamed as well."""

CHANGE = """
-            found[event.rank] -= last.start - event.start
"""
