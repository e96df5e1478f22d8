"""The way back takes the splits of the way there, not exchanged."""

CHANGE = """
-    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
+    dist.all_to_all_single(returned, made.contiguous(), receives, sends)
"""
