"""Recursive doubling with one tensor in all."""

CHANGE = """
-        "recursive_doubling": (bits, bits * num_bytes),
+        "recursive_doubling": (bits, num_bytes),
"""
