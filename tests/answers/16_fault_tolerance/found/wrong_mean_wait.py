"""The last rank is blamed for the mean of the waits in a collective."""

CHANGE = """
-        found[last.rank] += last.start - together[0].start
+        waits = [last.start - event.start for event in together[:-1]]
+        found[last.rank] += sum(waits) / max(1, len(waits))
"""
