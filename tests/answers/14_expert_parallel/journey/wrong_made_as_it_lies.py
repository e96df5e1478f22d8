"""What experts made is sent as it lies in memory, and it may be non-contiguous."""

CHANGE = """
-    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
+    dist.all_to_all_single(returned, made, sends, receives)
"""
