"""A new optimizer in every step: no momentum."""

CHANGE = """
-        optimizer.step(stage.gradients())
+        SGD(stage.parameters(), LR, MOMENTUM).step(stage.gradients())
"""
