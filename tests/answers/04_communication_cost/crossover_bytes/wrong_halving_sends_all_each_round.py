"""Halving-doubling with the whole tensor in every round."""

CHANGE = """
-        "halving_doubling": (2 * bits, 2 * share * num_bytes),
+        "halving_doubling": (2 * bits, 2 * bits * num_bytes),
"""
