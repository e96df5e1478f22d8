"""Each round makes a new sum, so nothing that is sent changes; all sends end at the end."""

CHANGE = """
-    distance = 1
+    sends, distance = [], 1

-        sending = dist.isend(total, rank ^ distance)
+        sends.append(dist.isend(total, rank ^ distance))

-        sending.wait()
-        total += arrived
+        total = total + arrived

-        dist.send(total, rank + power)
+        sends.append(dist.isend(total, rank + power))
+    for sending in sends:
+        sending.wait()
"""
