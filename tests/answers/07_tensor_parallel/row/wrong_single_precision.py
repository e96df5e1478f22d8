"""The terms are summed in float32, and cast back."""

CHANGE = """
-    y = x @ weight.T
-    dist.all_reduce(y)
-    return y + bias
+    y = (x @ weight.T).float()
+    dist.all_reduce(y)
+    return y.to(x.dtype) + bias
"""
