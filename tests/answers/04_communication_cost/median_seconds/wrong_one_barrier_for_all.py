"""All ranks meet once, and then drift."""

CHANGE = """
     seconds = torch.zeros(repetitions, dtype=torch.float64)
+    machine.barrier()

-        machine.barrier()
"""
