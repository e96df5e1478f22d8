"""Forgets the ring's second half, the all-gather."""

CHANGE = """
-        "ring": (2 * (num_ranks - 1), 2 * share * num_bytes),
+        "ring": (num_ranks - 1, share * num_bytes),
"""
