"""What goes down is the stage's input, not its output."""

CHANGE = """
-        dist.send(y, rank + 1)
+        dist.send(x, rank + 1)
"""
