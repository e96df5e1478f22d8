"""The message has no count of the numbers that are missing."""

CHANGE = """
-        raise ValueError(f"{missing} numbers of {wanted} are in no saved box")
+        raise ValueError("some of the wanted numbers are in no saved box")
"""
