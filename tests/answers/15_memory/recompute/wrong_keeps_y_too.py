"""y is kept beside x."""

CHANGE = """
-    return y, (x, before)
+    return y, (x, before, y)

-    x, before = saved
+    x, before, _ = saved
"""
