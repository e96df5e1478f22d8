"""On average every rank sends the same: as many rows to each, and as many from each."""

CHANGE = """
-    sends = [int(part.sum()) for part in loads.split(held)]
-    receives = counts.view(n, len(mine)).sum(dim=1).tolist()
+    sends = receives = [len(part) for part in numbers.tensor_split(n)]
"""
