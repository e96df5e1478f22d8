"""Every stage is thought to hold as many micro-batches as there are stages."""

CHANGE = """
-    micro_batches = min(p - stage, m)
+    micro_batches = min(p, m)
"""
