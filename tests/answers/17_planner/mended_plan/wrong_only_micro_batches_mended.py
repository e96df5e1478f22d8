"""One mistake is mended: the micro-batches."""

CHANGE = """
-        rate = min(cards * machine.card, machine.inside)
+        rate = min(machine.ranks_per_host * machine.card, machine.inside)

-    flops = 3 * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
+    passes = 4 if at.recompute == "full" else 3
+    flops = passes * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
"""
