"""Of the choices that fit, the one that holds least."""

CHANGE = """
-    return min(found for saved, found in best.items() if saved <= num_bytes)[1]
+    return best[min(best)][1]
"""
