"""The first weights that backward sees are kept for all layers."""

CHANGE = """
-    norm, normed, hidden = saved
+    norm, normed, hidden = saved
+    A, B = half_backward.__dict__.setdefault("weights", (A, B))
"""
