"""A third all-to-all tells the receivers what the first one could have told them."""

CHANGE = """
-    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
+    wanted = numbers.new_empty(len(rows))
+    dist.all_to_all_single(wanted, numbers[order], receives, sends)
+    return rows, wanted, (order, sends, receives)
"""
