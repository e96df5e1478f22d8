"""Each block of keys and values is kept as it comes by: in the end seven of eight ranks'."""

CHANGE = """
     grad_block = torch.zeros_like(block)
+    kept = []
     for t in range(n):

             block = passed_on(block)
+            kept.append(block)
"""
