"""Both rings carry the whole tensor, and each gives half of the result."""

CHANGE = """
-    halves = [list(half.tensor_split(n)) for half in total.tensor_split(2)]
+    copies = [total, total.clone()]
+    halves = [list(copy.tensor_split(n)) for copy in copies]
"""
