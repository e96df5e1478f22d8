"""Buffers are float64, whatever x is."""

CHANGE = """
-    rows = x.new_empty(sum(receives), x.shape[1])
+    rows = torch.empty(sum(receives), x.shape[1], dtype=torch.float64)
"""
