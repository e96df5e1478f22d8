"""Gradients are gathered from all replicas and added, not reduced: too many bytes."""

CHANGE = """
-            dist.all_reduce(gradient, group=groups["dp"])
+            parts = [torch.empty_like(gradient) for _ in range(layout.dp)]
+            dist.all_gather(parts, gradient.contiguous(), group=groups["dp"])
+            gradient.copy_(torch.stack(parts).sum(dim=0))
+            dist.broadcast(gradient, group=groups["dp"], group_src=0)
"""
