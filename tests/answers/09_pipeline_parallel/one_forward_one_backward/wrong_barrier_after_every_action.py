"""All stages meet after each of their actions: right order, run one stage at a time."""

CHANGE = """
         forward(i)
+        dist.barrier()

             backward(i - warm_up)
+            dist.barrier()

         backward(i)
+        dist.barrier()
"""
