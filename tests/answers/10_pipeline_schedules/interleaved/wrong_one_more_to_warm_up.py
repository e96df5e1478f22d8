"""One forward more before the first backward."""

CHANGE = """
-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size + 1, len(pairs))
"""
