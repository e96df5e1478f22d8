"""A job that never gets far ends in an OverflowError."""

CHANGE = """
-    if x + restart_seconds / mean > 700:
-        return 0.0
"""
