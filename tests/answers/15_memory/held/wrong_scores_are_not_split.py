"""Selectively, the scores of all heads are taken away, of which tp left this rank a share."""

CHANGE = """
-    scores = 5 * heads * positions / t
+    scores = 5 * heads * positions
"""
