"""Gradients of a mean over the global batch, averaged once more."""

CHANGE = """
             dist.all_reduce(gradient, group=groups["dp"])
+            gradient /= layout.dp
"""
