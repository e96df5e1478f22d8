"""Each rank adds a n-th of b; it is the caller's b that is divided."""

CHANGE = """
+    second_bias /= world_size
     return [

-    y = hidden @ second.T
+    y = hidden @ second.T + second_bias

-    return y + second_bias, (x, hidden)
+    return y, (x, hidden)
"""
