"""What backward needs waits in a global queue: right while batches go back in their order."""

CHANGE = """
-    return x, saved
+    WENT.append(saved)
+    return x, []
+
+
+WENT = []

     world_size, gradients = dist.get_world_size(), []
+    saved = WENT.pop(0)
"""
