"""What nobody saved stays as it was, and nobody is told."""

CHANGE = """
-    if missing:
+    if missing == math.prod(wanted.sizes) and missing:
"""
