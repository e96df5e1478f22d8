"""There as forward came back, and back as it went."""

CHANGE = """
-    grad_made = leaving.new_empty(sum(receives), leaving.shape[1])
-    dist.all_to_all_single(grad_made, leaving, receives, sends)
+    grad_made = leaving.new_empty(sum(sends), leaving.shape[1])
+    dist.all_to_all_single(grad_made, leaving, sends, receives)
"""
