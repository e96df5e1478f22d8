"""Four fifths of all messages of gradients are hidden, however long they take."""

CHANGE = """
-    found["gradients"] = sent - 0.8 * min(sent, turn)
+    found["gradients"] = sent - 0.8 * sent
"""
