"""Which parameters a stage has is asked of the library."""

CHANGE = """
-    parameters = blocks * ((12 * d * d + 7 * d) / t + 6 * d)
-    parameters += first * (vocabulary * d / t + positions * d)
-    parameters += last * (2 * d + (p > 1) * vocabulary * d / t)
+    from byhand.costs.counting import owned
+
+    here = owned(gpt(*sizes, scores=5), layout, stage)
+    parameters = sum(one.split / t + one.whole + one.by_token + one.partial for one in here)
"""
