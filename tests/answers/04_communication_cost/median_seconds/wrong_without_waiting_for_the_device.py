"""The clock stops when the call is queued."""

CHANGE = """
-        machine.wait()
"""
