"""The shares of the loss gather in a default argument: those of the step before are still there."""

CHANGE = """
-    model: MLP, micro_batches: list[tuple[torch.Tensor, torch.Tensor]]
+    model: MLP, micro_batches: list[tuple[torch.Tensor, torch.Tensor]], shares: list = []

-        loss += share
-    dist.all_reduce(loss)
+        shares.append(share)
+    loss = sum(shares, loss)
+    dist.all_reduce(loss)
"""
