"""The error is kept in a global: that of whichever tensor was compressed last."""

CHANGE = """
-    wanted = gradient + error
+    global last
+    wanted = gradient + (last if error.any() else 0)

     kept = wanted.index_fill(0, positions, 0)
+    last = kept
"""
