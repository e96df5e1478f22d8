"""Of each dp, tp and pp, the ten with the smallest bound are asked, and no more."""

CHANGE = """
-    best, fewest = None, math.inf
+    best, fewest, tried = None, math.inf, Counter()

-        if question.seconds(at) < fewest:
+        tried[at.dp, at.tp, at.pp] += 1
+        if tried[at.dp, at.tp, at.pp] <= 10 and question.seconds(at) < fewest:
"""
