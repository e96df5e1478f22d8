"""Groups in the order that comes without asking: right losses, over the links that were spared."""

CHANGE = """
-    groups = groups_for_this_rank(layout.groups, GROUPS)
+    groups = groups_for_this_rank(Layout(layout.dp, layout.tp, layout.pp).groups, GROUPS)
"""
