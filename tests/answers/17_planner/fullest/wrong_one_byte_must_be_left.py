"""What fills a rank to its last byte does not fit."""

CHANGE = """
-    return sorted((at for at in layouts if held[at] <= num_bytes), key=held.get)
+    return sorted((at for at in layouts if held[at] < num_bytes), key=held.get)
"""
