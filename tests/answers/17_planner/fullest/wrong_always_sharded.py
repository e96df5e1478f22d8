"""The optimizer is shared out without ZeRO, too."""

CHANGE = """
-        found["optimizer"] = 12 * n / (at.dp if at.zero else 1)
+        found["optimizer"] = 12 * n / at.dp
"""
