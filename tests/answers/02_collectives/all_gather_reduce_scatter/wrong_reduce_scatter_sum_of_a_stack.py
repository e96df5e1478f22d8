"""torch sums int32 into int64: the dtype is not the argument's."""

LIKE = "right_direct_exchange"
CHANGE = """
-    return sum(arrived.values(), start=shards[rank].clone())
+    return torch.stack([shards[rank], *arrived.values()]).sum(dim=0)
"""
