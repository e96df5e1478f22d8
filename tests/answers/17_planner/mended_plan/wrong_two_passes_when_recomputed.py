"""Recomputation counts as two passes instead of four."""

CHANGE = """
-    flops = 3 * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
+    passes = 2 if at.recompute == "full" else 3
+    flops = passes * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
"""
