"""Gradients of all replicas are gathered and added: of two that sends no more than a sum."""

CHANGE = """
-            dist.all_reduce(gradient, group=groups["dp"])
+            parts = [torch.empty_like(gradient) for _ in range(layout.dp)]
+            dist.all_gather(parts, gradient, group=groups["dp"])
+            gradient.copy_(torch.stack(parts).sum(dim=0))
"""
