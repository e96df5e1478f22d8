"""newest begins at 0, and a step has to be larger."""

CHANGE = """
-    return f"{parent}/step-{max(steps)}" if steps else None
+    best = max(steps, default=0)
+    return f"{parent}/step-{best}" if best else None
"""
