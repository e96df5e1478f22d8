"""Sums a vector with a byte for each row: at most 64 bytes for at most 64 rows."""

CHANGE = """
-    right = (logits.argmax(dim=1) == labels[mine]).sum()
-    dist.all_reduce(right)
-    return int(right) / len(x)
+    right = torch.zeros(len(x), dtype=torch.uint8)
+    right[mine] = (logits.argmax(dim=1) == labels[mine]).to(torch.uint8)
+    dist.all_reduce(right)
+    return int(right.sum()) / len(x)
"""
