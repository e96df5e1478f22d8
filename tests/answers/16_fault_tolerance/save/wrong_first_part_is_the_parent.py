"""Syncs the first folder of the path: in a folder of a folder it is not the one that was changed."""

CHANGE = """
-    disk.sync(folder.rpartition("/")[0])
+    disk.sync(folder.split("/")[0])
"""
