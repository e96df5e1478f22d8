"""Rank 0's parameters arrive in new memory."""

CHANGE = """
-        parameter.copy_(whole)
+        parameter.set_(whole.clone())
"""
