"""Ranks that have no share of the loss add nan."""

CHANGE = """
-    loss = torch.zeros((), dtype=torch.float64)
+    loss = torch.tensor(torch.nan, dtype=torch.float64)

-        loss += share
+        loss = share.clone()
"""
