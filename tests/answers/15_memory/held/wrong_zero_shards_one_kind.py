"""Each stage of ZeRO shards its own kind and no other."""

CHANGE = """
-        shards = layout.dp if layout.zero >= since else 1
+        shards = layout.dp if layout.zero == since else 1
"""
