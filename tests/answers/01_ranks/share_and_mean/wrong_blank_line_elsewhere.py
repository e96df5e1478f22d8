"""The other ranks print an empty line."""

CHANGE = """
-    if rank == 0:
-        print(f"mean {mean:.3f}")
+    print(f"mean {mean:.3f}" if rank == 0 else "")
"""
