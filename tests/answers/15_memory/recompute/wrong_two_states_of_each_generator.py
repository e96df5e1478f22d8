"""Where a generator stood before forward is kept, and where it stood after it as well."""

CHANGE = """
-    return y, (x, before)
+    return y, (x, before, [generator.get_state() for generator in generators])

-    x, before = saved
+    x, before, _ = saved
"""
