"""A token's weights are made to add up to one, whatever was given."""

CHANGE = """
     order, sends, receives = saved
+    weights = weights / weights.sum(dim=1, keepdim=True)
"""
