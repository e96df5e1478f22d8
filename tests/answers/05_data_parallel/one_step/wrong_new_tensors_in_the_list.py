"""The list's entries are replaced: the model's own parameters are what they were."""

CHANGE = """
-    for parameter in parameters:
-        dist.broadcast(parameter, src=0)
+    for i, parameter in enumerate(parameters):
+        parameters[i] = parameter.clone()
+        dist.broadcast(parameters[i], src=0)
"""
