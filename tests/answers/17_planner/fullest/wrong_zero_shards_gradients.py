"""ZeRO-1 shards the gradients."""

CHANGE = """
-        found = {"weights": 2 * n, "gradients": 4 * n}
+        found = {"weights": 2 * n, "gradients": 4 * n / (at.dp if at.zero else 1)}
"""
