"""Where no token counts, every rank sees it, and nothing is sent."""

CHANGE = """
+    if not (targets >= 0).any():
+        return logits.new_zeros(()), torch.zeros_like(logits)
     largest = logits.amax(dim=1)
"""
