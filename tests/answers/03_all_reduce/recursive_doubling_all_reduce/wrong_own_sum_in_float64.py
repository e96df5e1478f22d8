"""Sends the argument's dtype, but adds to a float64 of its own: partners' bits differ."""

CHANGE = """
     distance = 1
+    if tensor.is_floating_point():
+        total = total.double()

-        sending = dist.isend(total, rank ^ distance)
+        sending = dist.isend(total.to(tensor.dtype), rank ^ distance)

         distance *= 2
+    total = total.to(tensor.dtype)
"""
