"""A rank that is alone in its group, and in no other, is missing."""

CHANGE = """
-    found = {event.rank: 0.0 for event in events}
+    found = {event.rank: 0.0 for event in events if len(event.group) > 1}

-    for together in calls.values():
+    for together in (calls_of for calls_of in calls.values() if len(calls_of) > 1):
"""
