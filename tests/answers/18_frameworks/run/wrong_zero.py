"""ZeRO's first stage, by name: a step of task 2 knows nothing of it."""

CHANGE = """
-    return Layout(dp=2, pp=8, order="tp-cp-ep-pp-dp")
+    return Layout(dp=2, pp=8, order="tp-cp-ep-pp-dp", zero=1)
"""
