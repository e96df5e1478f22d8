"""What fits stays in the order in which it was given."""

CHANGE = """
-    return sorted((at for at in layouts if held[at] <= num_bytes), key=held.get)
+    return [at for at in layouts if held[at] <= num_bytes]
"""
