"""The loss is divided by the global batch, its gradient is not."""

CHANGE = """
-    grad /= global_batch
"""
