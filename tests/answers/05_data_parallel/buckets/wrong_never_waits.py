"""The all-reduces are started and nobody waits for them: the sums may not be there."""

CHANGE = """
-        pending.wait()
"""
