"""The maximum is taken to be 0 at least: where all logits are small, nothing is left of the sum."""

CHANGE = """
-    largest = logits.amax(dim=1)
+    largest = logits.amax(dim=1).clamp(min=0)
"""
