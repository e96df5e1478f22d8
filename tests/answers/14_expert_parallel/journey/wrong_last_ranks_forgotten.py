"""Ranks after the last one with experts get no splits."""

CHANGE = """
-    held = torch.bincount(home, minlength=n).tolist()
+    held = torch.bincount(home).tolist()
"""
