"""What `isend` returns is kept and never waited for: the step may end before its messages left."""

CHANGE = """
-    for pending, _ in sends:
-        pending.wait()
"""
