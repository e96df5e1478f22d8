"""The bias has no say in the choice."""

CHANGE = """
-    chosen = (scores + bias).topk(top_k).indices
+    chosen = scores.topk(top_k, dim=1).indices
"""
