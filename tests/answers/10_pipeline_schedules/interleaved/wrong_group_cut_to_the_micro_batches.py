"""A group is never larger than the step: fewer forwards to warm up than the rule says."""

CHANGE = """
-    pairs = []
+    pairs, group_size = [], min(group_size, num_micro_batches)
"""
