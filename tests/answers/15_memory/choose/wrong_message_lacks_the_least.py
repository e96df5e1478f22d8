"""The refusal does not say how little there could be."""

CHANGE = """
-        raise ValueError(f"the chain saves {least} bytes at least, and {num_bytes} are allowed")
+        raise ValueError(f"more than {num_bytes} bytes are needed")
"""
