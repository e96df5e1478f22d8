"""All is computed in float32, and cast back."""

CHANGE = """
     block, grad_q = torch.stack([k, v]), torch.zeros_like(q)
+    back = q.dtype
+    grad_y, q, block, y, lse, grad_q = (
+        tensor.float() for tensor in (grad_y, q, block, y, lse, grad_q)
+    )

-    return grad_q, grad_block[0], grad_block[1]
+    return grad_q.to(back), grad_block[0].to(back), grad_block[1].to(back)
"""
