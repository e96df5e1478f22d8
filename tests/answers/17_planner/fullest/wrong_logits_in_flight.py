"""The logits of all micro-batches in flight are held."""

CHANGE = """
-        found["loss"] = last * 10 * tokens * vocabulary / t
+        found["loss"] = last * 10 * tokens * vocabulary / t * f
"""
