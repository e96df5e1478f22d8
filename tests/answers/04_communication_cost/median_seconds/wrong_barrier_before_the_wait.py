"""A second barrier in the time, while the device works, so that it is hidden behind long calls."""

CHANGE = """
         machine.call()
+        machine.barrier()
         machine.wait()
"""
