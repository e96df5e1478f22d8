"""Only the 150 with the smallest bound are asked."""

CHANGE = """
-    for at in sorted(filter(question.fits, every()), key=question.at_least):
+    for at in sorted(filter(question.fits, every()), key=question.at_least)[:150]:
"""
