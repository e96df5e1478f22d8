"""What backward needs is kept in a global stack, so the last forward's comes first."""

CHANGE = '''
     """x [T/n, D] sharded by token, g, A_r, B_r -> y [T/n, D], and whatever half_backward needs."""
+    global stack
+    stack = globals().get("stack", [])

-    return x + y, (norm, normed, hidden)
+    stack.append((norm, normed, hidden))
+    return x + y, None

-    norm, normed, hidden = saved
+    norm, normed, hidden = stack.pop()
'''
