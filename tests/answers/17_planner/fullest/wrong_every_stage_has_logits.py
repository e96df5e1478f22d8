"""Each stage holds logits."""

CHANGE = """
-        found["loss"] = last * 10 * tokens * vocabulary / t
+        found["loss"] = 10 * tokens * vocabulary / t
"""
