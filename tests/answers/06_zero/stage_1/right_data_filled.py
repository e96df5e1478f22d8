"""Through `.data`, but into the memory that is there."""

CHANGE = """
-        parameter.copy_(new)
+        parameter.data[...] = new
"""
