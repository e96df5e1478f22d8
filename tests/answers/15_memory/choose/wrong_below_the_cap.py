"""What is exactly the cap is thought too much."""

CHANGE = """
-    return min(found for saved, found in best.items() if saved <= num_bytes)[1]
+    return min(found for saved, found in best.items() if saved < num_bytes)[1]
"""
