"""Whether a layout fits is not asked."""

CHANGE = """
-    for at in sorted(filter(question.fits, every()), key=question.at_least):
+    for at in list(every())[:1]:

-        if question.at_least(at) >= fewest:
-            break
-        if question.seconds(at) < fewest:
+        if best is None:

-            best, fewest = at, question.seconds(at)
+            best = at
"""
