"""Two mistakes are mended, not the operations that are done twice."""

CHANGE = """
-    flops = 3 * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
+    passes = 4 if at.recompute == "full" else 3
+    flops = passes * forward * num_sequences * positions / (at.dp * at.tp * at.pp)
"""
