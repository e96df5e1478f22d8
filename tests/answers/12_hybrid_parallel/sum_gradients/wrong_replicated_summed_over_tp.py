"""What all tensor-parallel ranks have alike is summed over them, too."""

CHANGE = """
-        if placement == "partial":
+        if placement != "sharded":
"""
