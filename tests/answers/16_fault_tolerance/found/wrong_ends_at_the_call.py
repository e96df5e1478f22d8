"""Others are said to have waited until their call ended."""

CHANGE = """
-        found[last.rank] += last.start - together[0].start
-        for event in together:
-            found[event.rank] -= last.start - event.start
+        found[last.rank] += together[0].end - together[0].start if together[1:] else 0
+        for event in together[:-1]:
+            found[event.rank] -= event.end - event.start
"""
