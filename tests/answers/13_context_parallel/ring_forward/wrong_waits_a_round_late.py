"""The next block is waited for when it has been used: it may be there by luck."""

CHANGE = """
+    late = []
     for t in range(n):

         scores = block_scores(q, block[0], mask)
+        [request.wait() for request in late]

-            sending.wait()
-            receiving.wait()
+            late = [sending, receiving]
"""
