"""All five mended, and the gradients averaged over the replicas."""

CHANGE = """
     share = model.run(x, y, num_micro_batches, global_batch=len(tokens))
     for gradient, placement in zip(model.gradients, model.placements, strict=True):
+        gradient /= num_replicas
"""
