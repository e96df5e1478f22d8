"""Whole numbers alone: what tp splits is rounded down."""

CHANGE = """
-    whole = 24 * d / t + 10 * d / u + 5 * heads * positions / t
-    scores = 5 * heads * positions / t
-    block = {"none": whole, "selective": whole - scores, "full": 2 * d / u}[layout.recompute]
-    token = blocks * block + first * d / u + last * (4 * d / u + 6 * vocabulary / t)
+    whole = 24 * d // t + 10 * d // u + 5 * heads * positions // t
+    scores = 5 * heads * positions // t
+    block = {"none": whole, "selective": whole - scores, "full": 2 * d // u}[layout.recompute]
+    token = blocks * block + first * d // u + last * (4 * d // u + 6 * vocabulary // t)
"""
