"""The bytes of the files are left to the system: after a cut a file is there, and empty."""

CHANGE = """
-        disk.sync(f"{partial}/{name}")
"""
