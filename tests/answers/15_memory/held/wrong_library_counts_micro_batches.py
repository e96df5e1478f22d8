"""The library says how many micro-batches are in flight."""

CHANGE = """
-    micro_batches = min(p - stage, m)
+    from byhand.costs.counting import in_flight
+
+    micro_batches = in_flight(layout, m, stage)
"""
