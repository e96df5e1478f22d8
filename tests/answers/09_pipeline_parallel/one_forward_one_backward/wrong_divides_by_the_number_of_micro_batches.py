"""Each gradient is divided by the number of micro-batches, though the loss was a mean already."""

CHANGE = """
             losses.append(share)
+            grad_y = grad_y / count
"""
