"""One error mended; no longer true: gradients and loss are divided by the micro-batches again."""

LIKE = "wrong_as_given"
CHANGE = """
-        gradient /= num_micro_batches

-        loss += share / num_micro_batches
+        loss += share
"""
