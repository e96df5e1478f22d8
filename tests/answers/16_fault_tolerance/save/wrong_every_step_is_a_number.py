"""newest takes what follows step- for a number; its own partial folders begin with another word."""

CHANGE = """
-    partial = f"{folder}.partial"
+    partial = folder.replace("step-", "partial-")

-    parts = [name.split("-") for name in disk.names(parent)]
-    steps = [int(p[1]) for p in parts if len(p) == 2 and p[0] == "step" and p[1].isdigit()]
+    names = [name for name in disk.names(parent) if name.startswith("step-")]
+    steps = [int(name.removeprefix("step-")) for name in names]
"""
