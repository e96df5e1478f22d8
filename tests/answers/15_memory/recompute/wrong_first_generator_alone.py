"""One generator is looked after, however many there are."""

CHANGE = """
-    before = [generator.get_state() for generator in generators]
+    before = [generator.get_state() for generator in generators[:1]]

-    for generator, state in zip(generators, before, strict=True):
+    for generator, state in zip(generators, before, strict=False):
"""
