"""Rank 0's parameters travel in float64, whatever they are."""

CHANGE = """
-        whole = parameter.contiguous()
+        whole = parameter.double().contiguous()
"""
