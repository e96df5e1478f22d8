"""The number of collectives that fit is rounded before it is shared out."""

CHANGE = """
-    fitting = compute_seconds / collective  # collectives that a step can hide
+    fitting = round(compute_seconds / collective)
"""
