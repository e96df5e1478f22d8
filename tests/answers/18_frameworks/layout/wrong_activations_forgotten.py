"""The states alone are counted."""

CHANGE = """
-                    sum(held(MODEL, one, num_sequences, stage, state=STATE).values())
+                    sum(held(MODEL, one, num_sequences, stage, state=STATE)[k] for k in STATE)
"""
