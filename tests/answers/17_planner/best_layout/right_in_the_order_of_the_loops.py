"""Layouts are asked in the order of the loops, where their bound leaves hope of a faster step."""

CHANGE = """
-    for at in sorted(filter(question.fits, every()), key=question.at_least):
+    for at in filter(question.fits, every()):

-        if question.at_least(at) >= fewest:
-            break
-        if question.seconds(at) < fewest:
+        if question.at_least(at) < fewest and question.seconds(at) < fewest:
"""
