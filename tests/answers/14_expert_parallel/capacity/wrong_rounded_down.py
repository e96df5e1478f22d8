"""The capacity is rounded down."""

CHANGE = """
-    limit = math.ceil(factor * num_tokens * top_k / num_experts)
+    limit = math.floor(factor * num_tokens * top_k / num_experts)
"""
