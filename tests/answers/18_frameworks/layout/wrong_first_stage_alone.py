"""Only the first stage's memory is looked at."""

CHANGE = """
-                    for stage in range(one.pp)
+                    for stage in range(1)
"""
