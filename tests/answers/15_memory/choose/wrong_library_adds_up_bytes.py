"""What is held is added up by the library."""

CHANGE = """
-    whole = sum(layer.whole_bytes for layer in layers)
+    from byhand.memory.choice import held_bytes
+
+    whole = held_bytes(layers)
"""
