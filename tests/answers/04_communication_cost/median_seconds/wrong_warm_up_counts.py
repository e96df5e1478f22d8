"""The calls to warm up count too."""

CHANGE = """
-    for _ in range(warm_up):
-        machine.call()
-    machine.wait()
+    repetitions += warm_up
"""
