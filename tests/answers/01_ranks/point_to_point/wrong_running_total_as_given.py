"""The planted program: a rank without samples leaves. Hangs."""

CHANGE = """
     total = count.clone()
+    if count.item() == 0:
+        return total
"""
