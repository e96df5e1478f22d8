"""The experts' tensor-parallel degree is taken to be tp."""

CHANGE = """
-    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": world_size // copy, "pp": pp}
+    expert = {"tp": tp, "cp": 1, "ep": ep, "dp": world_size // (tp * ep * pp), "pp": pp}
"""
