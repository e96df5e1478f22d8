"""The right step, on a stage that drags a copy of the whole model along."""

CHANGE = """
-    optimizer = SGD(stage.parameters(), LR, MOMENTUM)
+    optimizer = SGD(stage.parameters(), LR, MOMENTUM)
+    whole = MLP(gpt_layers(weights))

     def step(tokens, following):
+        whole.zero_gradients()
"""
