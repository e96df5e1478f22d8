"""The warm-up counts (v - 1) p forwards, right for groups of p only."""

CHANGE = """
-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * num_stages, len(pairs))
"""
