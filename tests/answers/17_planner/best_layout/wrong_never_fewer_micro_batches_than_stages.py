"""There are always at least as many micro-batches as stages."""

CHANGE = """
-                    chunked = pp > 1 and each // rows % pp == 0
+                    if each // rows < pp:
+                        continue
+                    chunked = pp > 1 and each // rows % pp == 0
"""
