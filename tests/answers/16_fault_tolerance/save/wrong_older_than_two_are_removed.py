"""Keeps the newest two, to save room: older ones go."""

CHANGE = """
-    disk.sync(folder.rpartition("/")[0])
+    parent = folder.rpartition("/")[0]
+    steps = [int(n[5:]) for n in disk.names(parent) if re.fullmatch(r"step-[0-9]+", n)]
+    for step in sorted(steps)[:-2]:
+        disk.remove(f"{parent}/step-{step}")
+    disk.sync(parent)
"""
