"""Every layout that fits is asked for its seconds."""

CHANGE = """
-        if question.at_least(at) >= fewest:
-            break
-        if question.seconds(at) < fewest:
+        if question.seconds(at) < fewest:
"""
