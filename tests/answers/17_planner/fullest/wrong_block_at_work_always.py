"""A block at work is counted without recomputation, too."""

CHANGE = """
-        found["activations"] = tokens * (f * stage + full * whole)
+        found["activations"] = tokens * (f * stage + whole)
"""
