"""The ranks of "pp-tp" are listed with pp fastest, those of "tp-pp" with tp fastest."""

LIKE = "right_by_strides"
CHANGE = """
-    inside = [axis for axis in order.split("-") if axis in axes.split("-")]
+    inside = axes.split("-")
"""
