"""Lets one_hot guess how many classes there are: right where a row has the last one."""

CHANGE = """
-    grad = log_probabilities.exp()
-    grad[rows, labels] -= 1
+    grad = log_probabilities.exp() - F.one_hot(labels)
"""
