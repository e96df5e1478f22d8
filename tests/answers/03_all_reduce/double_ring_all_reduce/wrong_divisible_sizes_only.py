"""Halves and shards are cut as if n divided them; the rest stays behind."""

CHANGE = """
-    halves = [list(half.tensor_split(n)) for half in total.tensor_split(2)]
+    length = len(total) // (2 * n)
+    shards = [total[k * length : (k + 1) * length] for k in range(2 * n)]
+    halves = [shards[:n], shards[n:]]
"""
