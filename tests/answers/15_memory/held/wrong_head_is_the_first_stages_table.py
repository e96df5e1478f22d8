"""The last stage of a pipeline is thought to have no table of its own."""

CHANGE = """
-    parameters += last * (2 * d + (p > 1) * vocabulary * d / t)
+    parameters += last * 2 * d
"""
