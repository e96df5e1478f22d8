"""x of a recomputed block is whole on every rank of tp."""

CHANGE = """
-    block = {"none": whole, "selective": whole - scores, "full": 2 * d / u}[layout.recompute]
+    block = {"none": whole, "selective": whole - scores, "full": 2 * d}[layout.recompute]
"""
