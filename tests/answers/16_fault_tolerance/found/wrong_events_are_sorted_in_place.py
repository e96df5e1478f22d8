"""The caller's list of events is in another order afterwards."""

CHANGE = """
-    for event in sorted(events, key=lambda event: event.start):
+    events.sort(key=lambda event: event.start)
+    for event in events:
"""
