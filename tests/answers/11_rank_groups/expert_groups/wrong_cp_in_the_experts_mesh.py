"""The experts' mesh has cp as well."""

CHANGE = """
-    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": world_size // copy, "pp": pp}
+    expert = {"tp": expert_tp, "cp": cp, "ep": ep, "dp": world_size // (copy * cp), "pp": pp}
"""
