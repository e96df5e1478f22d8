"""newest takes every name that ends in - and a number: data-500 is step 500."""

CHANGE = """
-    steps = [int(p[1]) for p in parts if len(p) == 2 and p[0] == "step" and p[1].isdigit()]
+    steps = [int(p[1]) for p in parts if len(p) == 2 and p[1].isdigit()]
"""
