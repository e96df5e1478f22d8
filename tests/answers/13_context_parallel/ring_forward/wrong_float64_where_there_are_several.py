"""On one rank whatever dtype was given, on several float64."""

CHANGE = """
-    block = torch.stack([k, v])
-    y, lse = torch.zeros_like(q), q.new_full((len(q),), -math.inf)
+    if n > 1:
+        q, k, v = q.double(), k.double(), v.double()
+    block = torch.stack([k, v])
+    y, lse = torch.zeros_like(q), q.new_full((len(q),), -math.inf)
"""
