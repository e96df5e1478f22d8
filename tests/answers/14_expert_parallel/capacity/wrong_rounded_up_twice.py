"""The even share is rounded up before it is multiplied by the factor."""

CHANGE = """
-    limit = math.ceil(factor * num_tokens * top_k / num_experts)
+    limit = math.ceil(factor * math.ceil(num_tokens * top_k / num_experts))
"""
