"""The scale never falls below 2^-14, float16's smallest number of full digits."""

CHANGE = """
-        return scale * backoff, 0
+        return max(scale * backoff, 2.0**-14), 0
"""
