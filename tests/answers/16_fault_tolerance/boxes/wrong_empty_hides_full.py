"""Replicas are told by where they start, so that an empty box hides the full one behind it."""

CHANGE = """
-        if count and box not in seen:
-            seen.add(box)
-            found.append((number, tuple(there), tuple(here)))
-            missing -= count
+        if box.starts not in seen and count:
+            found.append((number, tuple(there), tuple(here)))
+            missing -= count
+        seen.add(box.starts)
"""
