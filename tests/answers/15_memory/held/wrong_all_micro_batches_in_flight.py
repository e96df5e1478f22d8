"""GPipe's number of micro-batches."""

CHANGE = """
-    micro_batches = min(p - stage, m)
+    micro_batches = m
"""
