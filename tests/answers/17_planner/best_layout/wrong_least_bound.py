"""The layout that computes and idles least is taken for the fastest."""

CHANGE = """
-        if question.at_least(at) >= fewest:
-            break
-        if question.seconds(at) < fewest:
+        if best is None:
"""
