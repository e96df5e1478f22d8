"""The list gets new tensors; the model's own keep the old weights."""

CHANGE = """
-    for parameter, new in zip(parameters, unpacked(flat, shapes), strict=True):
-        parameter.copy_(new)
+    parameters[:] = [new.clone() for new in unpacked(flat, shapes)]
"""
