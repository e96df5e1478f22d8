"""Where nothing fits, all is recomputed."""

CHANGE = """
-    if least > num_bytes:
-        raise ValueError(f"the chain saves {least} bytes at least, and {num_bytes} are allowed")
+    if least > num_bytes:
+        return list(range(len(layers)))
"""
