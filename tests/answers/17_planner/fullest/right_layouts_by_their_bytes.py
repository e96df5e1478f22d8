"""A table of layouts by their bytes, and a tuple of those that fit."""

CHANGE = """
-    return sorted((at for at in layouts if held[at] <= num_bytes), key=held.get)
+    by_bytes = {number: at for at, number in held.items()}
+    return tuple(by_bytes[number] for number in sorted(by_bytes) if number <= num_bytes)
"""
