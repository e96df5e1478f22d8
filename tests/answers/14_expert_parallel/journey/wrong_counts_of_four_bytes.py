"""Counts travel as int32: other bytes than the statement names."""

CHANGE = """
-    loads = torch.bincount(numbers, minlength=len(home))[by_rank]
+    loads = torch.bincount(numbers, minlength=len(home))[by_rank].int()
"""
