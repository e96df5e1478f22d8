"""Halving-doubling without the way back."""

CHANGE = """
-        "halving_doubling": (2 * bits, 2 * share * num_bytes),
+        "halving_doubling": (bits, share * num_bytes),
"""
