"""The state waits in a global queue: right for models that step in the order they started in."""

CHANGE = """
-    return shard, optimizer([shard])
+    WAITING.append((shard, optimizer([shard])))
+
+
+WAITING = []

-    shard, optimizer = state
+    WAITING.append(WAITING.pop(0))
+    shard, optimizer = WAITING[-1]
"""
