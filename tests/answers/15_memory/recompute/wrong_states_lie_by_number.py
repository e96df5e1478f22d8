"""x is returned and a number; states lie by it in a global until they come back, if they do."""

CHANGE = """
-    before = [generator.get_state() for generator in generators]
+    global STATES, COUNT
+    STATES, COUNT = globals().get("STATES", {}), globals().get("COUNT", 0) + 1
+    STATES[COUNT] = [generator.get_state() for generator in generators]

-    return y, (x, before)
+    return y, (x, COUNT)

-    x, before = saved
+    x, before = saved[0], STATES.pop(saved[1])
"""
