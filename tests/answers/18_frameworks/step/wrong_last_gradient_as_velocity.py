"""What is kept from step to step is the last gradient alone: two steps' losses are right."""

CHANGE = """
-        optimizer.step(stage.gradients())
+        optimizer.step(stage.gradients())
+        for velocity, gradient in zip(optimizer.velocity, stage.gradients(), strict=True):
+            velocity.copy_(gradient)
"""
