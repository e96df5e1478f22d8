"""One error mended; no longer true: each rank clips by its own norm."""

LIKE = "wrong_as_given"
CHANGE = """
             square += gradient.square().sum()
+    dist.all_reduce(square, group=groups["tp-pp"])
"""
