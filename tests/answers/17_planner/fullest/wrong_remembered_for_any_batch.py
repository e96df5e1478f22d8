"""What was found is kept in a default argument, for any number of sequences."""

CHANGE = """
-def fullest(sizes: Sizes, at: Layout, num_sequences: int) -> dict[str, float]:
+def fullest(sizes, at, num_sequences, known={}):

-    num_blocks, d, _, vocabulary, positions = sizes
+    if (sizes, at) in known:
+        return known[sizes, at]
+    num_blocks, d, _, vocabulary, positions = sizes

-    return max(ends, key=lambda found: sum(found.values()))
+    known[sizes, at] = max(ends, key=lambda found: sum(found.values()))
+    return known[sizes, at]
"""
