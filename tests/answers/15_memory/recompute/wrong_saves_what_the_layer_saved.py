"""What the layer saved is kept beside x: nothing is won."""

CHANGE = """
-    y, _ = layer.forward(x)
-    return y, (x, before)
+    y, whole = layer.forward(x)
+    return y, (x, before, whole)

-    x, before = saved
+    x, before, _ = saved
"""
