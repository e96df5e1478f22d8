"""The head is a second table on one stage alone, too."""

CHANGE = """
-    parameters += last * (2 * d + (p > 1) * vocabulary * d / t)
+    parameters += last * (2 * d + vocabulary * d / t)
"""
