"""Waits before the call, and not after it."""

CHANGE = """
-        machine.wait()

     for number in range(repetitions):
+        machine.wait()
"""
