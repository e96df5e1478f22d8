"""Counting from nought, one row too many is taken."""

CHANGE = """
-    return (places <= limit).view(top_k, num_tokens).T
+    return (places - 1 <= limit).view(top_k, num_tokens).T
"""
