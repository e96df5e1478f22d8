"""All but the last five are removed."""

CHANGE = """
-    disk.sync(folder.rpartition("/")[0])
+    parent = folder.rpartition("/")[0]
+    steps = [name[5:] for name in disk.names(parent) if re.fullmatch("step-[0-9]+", name)]
+    for step in sorted(steps, key=int)[:-5]:
+        disk.remove(f"{parent}/step-{step}")
+    disk.sync(parent)
"""
