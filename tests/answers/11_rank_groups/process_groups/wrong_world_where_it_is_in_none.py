"""A rank that is in no group of a name gets the whole world."""

CHANGE = """
-    mine = {}
+    mine = dict.fromkeys(groups, dist.group.WORLD)
"""
