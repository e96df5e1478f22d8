"""2 and 1/2, whatever the rule says."""

CHANGE = """
-        return scale * backoff, 0
+        return scale / 2, 0

-        return scale * growth, 0
+        return scale * 2, 0
"""
