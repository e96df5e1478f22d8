"""An even share of the tokens, not of the rows."""

CHANGE = """
-    limit = math.ceil(factor * num_tokens * top_k / num_experts)
+    limit = math.ceil(factor * num_tokens / num_experts)
"""
