"""The model is cut into as many stages and shards as can be."""

CHANGE = """
-    best, fewest = None, math.inf
+    return max(filter(question.fits, every()), key=lambda at: (at.tp * at.pp, at.zero))
+    best, fewest = None, math.inf
"""
