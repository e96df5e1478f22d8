"""Restarts are left out of all the time, too: a fraction of something else."""

CHANGE = """
-    return (1 - kept) * math.exp(-restart_seconds / mean)
+    return 1 - kept
"""
