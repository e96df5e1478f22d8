"""Rows are handed out sorted by expert, as the library does, and unsorted again."""

CHANGE = """
-    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
+    wanted = mine.repeat(n).repeat_interleave(counts)
+    here = wanted.argsort()
+    return rows[here], wanted[here], (order, sends, receives, here)

-    order, sends, receives = saved
+    order, sends, receives, here = saved
+    unsorted = torch.empty_like(made)
+    unsorted[here] = made
+    made = unsorted
"""
