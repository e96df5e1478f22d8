"""Others are said to have waited until their call ended."""

CHANGE = """
-            found[last.rank] += last.start - event.start
-            found[event.rank] -= last.start - event.start
+            if event is not last:
+                found[last.rank] += event.end - event.start
+                found[event.rank] -= event.end - event.start
"""
