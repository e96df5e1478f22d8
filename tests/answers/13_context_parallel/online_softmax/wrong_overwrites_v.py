"""The caller's v is cleared once it has been used."""

CHANGE = """
     total = rescale * total + weights.sum(dim=1, keepdim=True)
-    return largest, total, rescale * weighted + weights @ v
+    weighted = rescale * weighted + weights @ v
+    v.zero_()
+    return largest, total, weighted
"""
