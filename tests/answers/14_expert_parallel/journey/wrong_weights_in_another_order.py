"""The weights are not sorted as the rows were."""

CHANGE = """
-    terms = weights.flatten()[order, None] * returned
+    terms = weights.flatten()[:, None] * returned
"""
