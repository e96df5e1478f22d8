"""Recomputed in full, only the block at work is counted, and no x of the others."""

CHANGE = """
-    block = {"none": whole, "selective": whole - scores, "full": 2 * d / u}[layout.recompute]
+    block = {"none": whole, "selective": whole - scores, "full": 0}[layout.recompute]
"""
