"""Nobody syncs the names in the new folder."""

CHANGE = """
-    disk.sync(partial)
"""
