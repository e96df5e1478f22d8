"""join takes the shapes out of the caller's list."""

CHANGE = """
-    return unpacked(flat, shapes)
+    own = shapes[:]
+    shapes.clear()
+    return unpacked(flat, own)
"""
