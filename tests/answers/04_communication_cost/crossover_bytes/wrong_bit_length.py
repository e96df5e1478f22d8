"""One round too many for powers of two."""

CHANGE = """
-    bits, share = num_ranks.bit_length() - 1, (num_ranks - 1) / num_ranks
+    bits, share = num_ranks.bit_length(), (num_ranks - 1) / num_ranks
"""
