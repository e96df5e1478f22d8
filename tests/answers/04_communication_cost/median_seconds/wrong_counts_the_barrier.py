"""The clock starts before the barrier."""

CHANGE = """
-        start = machine.clock()

     for number in range(repetitions):
+        start = machine.clock()
"""
