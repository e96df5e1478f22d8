"""Stages are taken to be on one host."""

CHANGE = """
-    hop = 2 * tokens * d / t / (machine.card if leaves else machine.inside)
+    hop = 2 * tokens * d / t / machine.inside
"""
