"""Receives from anybody: before a rank has sent, only its children have anything for it."""

CHANGE = """
-        dist.recv(arrived, child)
+        dist.recv(arrived)
"""
