"""The mean of each size, which the bad ones move."""

CHANGE = """
-    for (num_ranks, num_bytes), seconds in repeated.items():
-        rounds, middle = 2 * (num_ranks - 1), statistics.median(seconds)
-        rows.append([rounds / middle, rounds * num_bytes / num_ranks / middle])
+    for (p, m), times in repeated.items():
+        middle = statistics.mean(times)
+        rows.append([2 * (p - 1) / middle, 2 * (p - 1) * m / p / middle])
"""
