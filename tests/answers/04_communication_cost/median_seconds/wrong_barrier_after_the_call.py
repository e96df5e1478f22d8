"""As the usual snippet: a barrier after the call, inside the time."""

CHANGE = """
-        machine.barrier()

         machine.wait()
+        machine.barrier()
"""
