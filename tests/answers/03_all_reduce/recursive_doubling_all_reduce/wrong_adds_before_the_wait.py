"""What arrived is added to the tensor that is still being sent."""

CHANGE = """
         dist.recv(arrived, rank ^ distance)
+        total += arrived

         sending.wait()
-        total += arrived
"""
