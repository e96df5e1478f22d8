"""Where two ranks send the same position, the last one wins."""

CHANGE = """
-        total[places] += theirs
+        total[places] = theirs
"""
