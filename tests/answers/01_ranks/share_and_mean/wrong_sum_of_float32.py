"""torch.tensor makes a Python float a float32: large sums lose their last digits."""

CHANGE = """
-    total = items[mine.start : mine.stop].sum()
+    total = torch.tensor(sum(items[mine.start : mine.stop].tolist(), 0.0))
"""
