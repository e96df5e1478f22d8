"""A barrier cures nothing, and costs a round at each step."""

CHANGE = """
             total += batches[step].sum()
+        dist.barrier()
"""
