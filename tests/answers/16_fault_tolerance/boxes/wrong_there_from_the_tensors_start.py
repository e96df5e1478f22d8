"""Slices of the saved box count from the whole tensor's first index."""

CHANGE = """
-            there.append(slice(first - a, last - a))
+            there.append(slice(first, last))
"""
