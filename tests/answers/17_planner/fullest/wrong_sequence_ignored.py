"""Between what tp splits nothing is ever shared."""

CHANGE = """
-    u = t if at.sequence else 1
+    u = 1
"""
