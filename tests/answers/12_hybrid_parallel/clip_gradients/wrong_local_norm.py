"""Each rank clips by the norm of what it holds itself."""

CHANGE = """
-    dist.all_reduce(square, group=groups["tp-pp"])
+    pass
"""
