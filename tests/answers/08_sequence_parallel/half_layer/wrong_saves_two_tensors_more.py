"""What the reduce-scatter gave and what the layer gave are saved as well, and never used."""

CHANGE = """
-    return x + y, (norm, normed, hidden)
+    return x + y, (norm, normed, hidden, y, y.clone())

-    norm, normed, hidden = saved
+    norm, normed, hidden, *_ = saved
"""
