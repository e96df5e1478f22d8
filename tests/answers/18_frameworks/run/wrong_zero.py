"""ZeRO's first stage, by name: a step of task 2 knows nothing of it."""

CHANGE = """
-    return Layout(tp=2, pp=8)
+    return Layout(tp=2, pp=8, zero=1)
"""
