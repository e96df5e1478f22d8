"""tp is thought to split norms and biases, too."""

CHANGE = """
-    parameters = blocks * ((12 * d * d + 7 * d) / t + 6 * d)
+    parameters = blocks * (12 * d * d + 13 * d) / t
"""
