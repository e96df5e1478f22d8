"""The orders that were given are empty in the end."""

CHANGE = """
     queues = [[("F" if kind == "F" else "I", *rest) for kind, *rest in o] for o in orders]
+    [o.clear() for o in orders]
"""
