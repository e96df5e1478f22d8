"""Element-wise work between what tp splits is never shared."""

CHANGE = """
-    u, full, groups = t if at.sequence else 1, at.recompute == "full", at.groups
+    u, full, groups = 1, at.recompute == "full", at.groups
"""
