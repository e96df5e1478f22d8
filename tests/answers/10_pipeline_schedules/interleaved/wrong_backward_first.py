"""In the steady state the backward comes before the forward."""

CHANGE = """
-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size, len(pairs))

-            order += [forwards[k], backwards[k - ahead]]
+            order += [backwards[k - ahead], forwards[k]]
"""
