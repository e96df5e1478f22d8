"""All forward, then all backward: with stages cut by halves it was under 1 MB for few sequences."""

CHANGE = """
-    schedule = one_forward_one_backward(layout.pp, m)
+    from byhand.pipeline_schedules import gpipe
+
+    schedule = gpipe(layout.pp, m)
"""
