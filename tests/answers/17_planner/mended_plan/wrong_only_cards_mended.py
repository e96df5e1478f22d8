"""One mistake is mended: the cards."""

CHANGE = """
-    m = num_sequences // (at.dp * at.rows)
+    m = num_sequences // at.rows

-    flops = 3 * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
+    passes = 4 if at.recompute == "full" else 3
+    flops = passes * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
"""
