"""What a save that was cut off has left makes the next one fail."""

CHANGE = """
-    if disk.exists(partial):
-        disk.remove(partial)
"""
