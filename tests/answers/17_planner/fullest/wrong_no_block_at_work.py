"""The block that backward computes again is forgotten."""

CHANGE = """
-        found["activations"] = tokens * (f * stage + full * whole)
+        found["activations"] = tokens * f * stage
"""
