"""All scores far below zero: their exponentials vanish, and 0 / 0 is left."""

CHANGE = """
-            scores.new_full((len(scores), 1), -1e30),
+            scores.new_zeros(len(scores), 1),
"""
