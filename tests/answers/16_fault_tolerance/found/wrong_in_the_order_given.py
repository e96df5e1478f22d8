"""Takes the events as they come."""

CHANGE = """
-    for event in sorted(events, key=lambda event: event.start):
+    for event in events:
"""
