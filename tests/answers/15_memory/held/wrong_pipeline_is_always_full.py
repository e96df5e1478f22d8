"""A pipeline is thought to be always full."""

CHANGE = """
-    micro_batches = min(p - stage, m)
+    micro_batches = p - stage
"""
