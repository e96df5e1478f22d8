"""What a save that was cut off may have left is removed: all that is no checkpoint."""

CHANGE = """
-    if disk.exists(partial):
-        disk.remove(partial)
+    for name in disk.names(folder.rpartition("/")[0]):
+        if not name.removeprefix("step-").isdigit():
+            disk.remove(f"{folder.rpartition('/')[0]}/{name}")
"""
