"""Ranks other than 0 receive the weight into float64, whatever it is."""

CHANGE = """
-    weight, mean = weight.clone(), loss.clone()
+    mean = loss.clone()
+    weight = weight.clone() if rank == 0 else torch.zeros(weight.shape, dtype=loss.dtype)
"""
