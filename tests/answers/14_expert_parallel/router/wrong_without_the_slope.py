"""The sigmoid's slope is left out."""

CHANGE = """
-    grad_scores = grad_scores * scores * (1 - scores)
"""
