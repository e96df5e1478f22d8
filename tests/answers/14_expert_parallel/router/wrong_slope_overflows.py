"""The slope is written with exponentials, which a score far below 0 makes infinite."""

CHANGE = """
-    grad_scores = grad_scores * scores * (1 - scores)
+    raised = (-(x @ weight.T)).exp()
+    grad_scores = grad_scores * raised / (1 + raised) ** 2
"""
