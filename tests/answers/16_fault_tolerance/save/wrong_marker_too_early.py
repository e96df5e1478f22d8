"""A marker says that all is there, and is written before the files are."""

LIKE = "right_marker"
CHANGE = """
-    disk.mkdir(folder)
+    disk.mkdir(folder)
+    disk.write(f"{folder}/whole", b"")
+    disk.sync(folder)

-    disk.sync(folder)
-    disk.sync(folder.rpartition("/")[0])
-    disk.write(f"{folder}/whole", b"")
-    disk.sync(folder)
+    disk.sync(folder)
+    disk.sync(folder.rpartition("/")[0])
"""
