"""What arrives of a message is never gathered."""

CHANGE = """
-    hop += 0 if at.sequence else gather
+    hop += 0
"""
