"""One mistake is mended: the operations."""

CHANGE = """
-    m = num_sequences // (at.dp * at.rows)
+    m = num_sequences // at.rows

-        rate = min(cards * machine.card, machine.inside)
+        rate = min(machine.ranks_per_host * machine.card, machine.inside)
"""
