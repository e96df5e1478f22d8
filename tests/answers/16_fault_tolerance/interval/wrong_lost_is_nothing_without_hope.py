"""What is too large for math.exp is said to lose nothing, as its goodput is nothing."""

CHANGE = """
-    kept = tried / math.expm1(tried) if tried < 700 else 0.0  # of what is no restart
+    kept = tried / math.expm1(tried) if tried < 700 else 1.0
"""
