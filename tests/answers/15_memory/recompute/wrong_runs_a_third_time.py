"""What the second forward saved is thrown away, and it runs a third time."""

CHANGE = """
-    _, again = layer.forward(x)
+    layer.forward(x)
+    for generator, state in zip(generators, before, strict=True):
+        generator.set_state(state)
+    _, again = layer.forward(x)
"""
