"""The warm-up of 1F1B: one forward a stage behind, not two."""

CHANGE = """
-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(num_stages - stage - 1 + (num_chunks - 1) * group_size, len(pairs))
"""
