"""The result is flat."""

CHANGE = """
-    return total.reshape(tensor.shape)
+    return total
"""
