"""The search ends as soon as a layout is slower than the one before."""

CHANGE = """
-        if question.at_least(at) >= fewest:
-            break
-        if question.seconds(at) < fewest:
+        if question.seconds(at) >= fewest:
+            break
+        if question.seconds(at) < fewest:
"""
