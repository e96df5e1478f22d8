"""As many micro-batches as stages, whatever the layout says of rows: right losses, large rows."""

CHANGE = """
-    m = layout.num_micro_batches(num_sequences)
+    m = layout.pp
"""
