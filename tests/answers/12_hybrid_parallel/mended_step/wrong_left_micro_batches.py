"""One error left: gradients and loss are divided by the micro-batches again."""

CHANGE = """
     share = model.run(x, y, num_micro_batches, global_batch=len(tokens))
     for gradient, placement in zip(model.gradients, model.placements, strict=True):
+        gradient /= num_micro_batches

-        loss += share
+        loss += share / num_micro_batches
"""
