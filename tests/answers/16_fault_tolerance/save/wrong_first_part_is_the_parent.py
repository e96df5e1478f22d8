"""Syncs the first folder of the path, which in a folder of a folder is not the parent."""

CHANGE = """
-    disk.sync(folder.rpartition("/")[0])
+    disk.sync(folder.split("/")[0])
"""
