"""A default argument collects the groups of all calls."""

CHANGE = """
-def groups_of_this_rank(groups: dict[str, list[list[int]]]) -> dict[str, dist.ProcessGroup]:
+def groups_of_this_rank(groups, mine={}):

-    mine = {}
-    for name, lists in groups.items():
+    for name, lists in groups.items():
"""
