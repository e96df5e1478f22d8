"""Tables and head are spread over all stages."""

CHANGE = """
-    first, last, blocks = stage == 0, stage == p - 1, num_blocks // p
+    first, last, blocks = 1 / p, 1 / p, num_blocks // p
"""
