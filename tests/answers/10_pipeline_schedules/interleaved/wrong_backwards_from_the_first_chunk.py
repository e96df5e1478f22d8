"""Backwards go through the chunks in the order of the forwards."""

CHANGE = """
-    backwards = [("B", i, num_chunks - 1 - chunk) for i, chunk in pairs]
+    backwards = [("B", i, chunk) for i, chunk in pairs]

-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size, len(pairs))
"""
