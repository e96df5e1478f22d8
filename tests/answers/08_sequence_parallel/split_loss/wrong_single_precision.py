"""All is computed in float32, and cast back."""

CHANGE = """
-    largest = logits.amax(dim=1)
+    back, logits = logits.dtype, logits.float()
+    largest = logits.amax(dim=1)

-    return loss, grad.mul_(counts[:, None]).div_(number)
+    return loss.to(back), grad.mul_(counts[:, None]).div_(number).to(back)
"""
