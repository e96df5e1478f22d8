"""What fits is sorted the other way."""

CHANGE = """
-    return sorted((at for at in layouts if held[at] <= num_bytes), key=held.get)
+    return sorted((at for at in layouts if held[at] <= num_bytes), key=held.get, reverse=True)
"""
