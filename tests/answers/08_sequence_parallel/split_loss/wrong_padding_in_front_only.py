"""As many tokens as are padding are taken to stand in front."""

CHANGE = """
-    counts = targets >= 0
+    counts = torch.arange(len(targets)) >= (targets < 0).sum()
"""
