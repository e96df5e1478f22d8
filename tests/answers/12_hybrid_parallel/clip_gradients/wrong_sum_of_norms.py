"""Norms are added instead of their squares."""

CHANGE = """
         square += counts * gradient.square().sum()
+    square = square.sqrt()

-    norm = square.sqrt().item()
+    norm = square.item()
"""
