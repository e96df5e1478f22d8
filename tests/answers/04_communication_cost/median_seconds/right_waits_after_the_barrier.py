"""All ranks meet while the warm-up may still run; only then each waits for its device."""

CHANGE = """
-    machine.wait()
     seconds = torch.zeros(repetitions, dtype=torch.float64)

         machine.barrier()
+        machine.wait()
"""
