"""Each replica is read, one over the other."""

CHANGE = """
-        if count and box not in seen:
-            seen.add(box)
-            found.append((number, tuple(there), tuple(here)))
-            missing -= count
+        if count:
+            found.append((number, tuple(there), tuple(here)))
+            missing -= 0 if box in seen else count
+            seen.add(box)
"""
