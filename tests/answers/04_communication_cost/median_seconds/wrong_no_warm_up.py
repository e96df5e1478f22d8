"""Nothing is called before the clock starts."""

CHANGE = """
-    for _ in range(warm_up):
-        machine.call()
-    machine.wait()
"""
