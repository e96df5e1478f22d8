"""The last rank is blamed for each wait: in a large group once for every rank that stood still."""

CHANGE = """
-        found[last.rank] += last.start - together[0].start
-        for event in together:
+        for event in together:
+            found[last.rank] += last.start - event.start
"""
