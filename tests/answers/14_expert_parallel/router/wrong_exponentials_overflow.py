"""The sigmoid is written with the exponential of the score, which a large score makes infinite."""

CHANGE = """
-    scores = (x @ weight.T).sigmoid()
+    raised = (x @ weight.T).exp()
+    scores = raised / (1 + raised)
"""
