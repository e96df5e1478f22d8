"""The gradients' ring has the starts of task 2's, which the plan leaves out."""

CHANGE = """
-    sums = 2 * (at.dp - 1) / at.dp * 4 * parameters(sizes, at, last=False) / rate
+    n = parameters(sizes, at, last=False)
+    sums = 2 * (at.dp - 1) * (4 * n / at.dp / rate + ALPHA)
"""
