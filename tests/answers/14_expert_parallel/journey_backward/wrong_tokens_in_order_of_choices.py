"""Row j · T + t, as in the library, where the statement has t · k + j."""

CHANGE = """
-    tokens = order // weights.shape[1]
+    tokens = order % len(weights)
"""
