"""A recomputed layer is thought to save nothing."""

CHANGE = """
-        freed = layer.whole_bytes - layer.recomputed_bytes
+        freed = layer.whole_bytes
"""
