"""A layer's weights are waited for when the layer has been computed: they may be there by luck."""

CHANGE = """
-        ALL_GATHER(flat, shard)
-        weight, bias = unpacked(flat, layer_shapes)
-        y = layer_forward(x, weight, bias)
+        work = ALL_GATHER(flat, shard, async_op=True)
+        weight, bias = unpacked(flat, layer_shapes)
+        y = layer_forward(x, weight, bias)
+        work.wait()
"""
