"""Replicas sum their gradients in float32, in half the bytes: losses drift from one device's."""

CHANGE = """
-            dist.all_reduce(gradient, group=groups["dp"])
+            rounded = gradient.float()
+            dist.all_reduce(rounded, group=groups["dp"])
+            gradient.copy_(rounded)
"""
