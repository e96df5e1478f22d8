"""`.data` is set to a new tensor: who looks into the old memory sees the old weights."""

CHANGE = """
-        parameter.copy_(new)
+        parameter.data = new.clone()
"""
