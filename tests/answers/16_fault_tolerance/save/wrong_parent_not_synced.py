"""The rename itself is not synced: a save that returned can be lost."""

CHANGE = """
-    disk.sync(folder.rpartition("/")[0])
"""
