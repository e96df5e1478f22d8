"""More chunks send no more messages."""

CHANGE = """
-    found["pp"] = 2 * hop * (m * v + p - 1) if p > 1 else 0.0
+    found["pp"] = 2 * hop * (m + p - 1) if p > 1 else 0.0
"""
