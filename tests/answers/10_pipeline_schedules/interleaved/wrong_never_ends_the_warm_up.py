"""A warm-up longer than there are forwards is not cut: backwards are lost."""

CHANGE = """
-        ahead = min(ahead, len(pairs))
"""
