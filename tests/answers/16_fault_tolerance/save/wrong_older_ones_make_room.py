"""Older checkpoints are removed before the new one is there."""

CHANGE = """
-    disk.mkdir(partial)
+    parent = folder.rpartition("/")[0]
+    for name in disk.names(parent):
+        if name.removeprefix("step-").isdigit():
+            disk.remove(f"{parent}/{name}")
+    disk.mkdir(partial)
"""
