"""Where the order does not end in pp, experts must be split like dense layers."""

CHANGE = """
-    if groups_over("pp", dense, order) != groups_over("pp", expert, order):
+    unlike = tp != expert_tp and pp > 1 and not order.endswith("pp")
+    if unlike or groups_over("pp", dense, order) != groups_over("pp", expert, order):
"""
