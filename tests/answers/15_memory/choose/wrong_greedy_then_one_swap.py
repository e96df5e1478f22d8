"""Greedy in three orders; then one layer for another, while that is cheaper."""

LIKE = "wrong_greedy_then_swaps"
CHANGE = """
-    return list(chain(*(combinations(numbers, k) for k in range(3))))
+    return list(chain(*(combinations(numbers, k) for k in range(2))))
"""
