"""Rounded as nccl-tests prints them, with two decimals."""

CHANGE = """
-    return algbw, algbw * factor
+    return round(algbw, 2), round(algbw * factor, 2)
"""
