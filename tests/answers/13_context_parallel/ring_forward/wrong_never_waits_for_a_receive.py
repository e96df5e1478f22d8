"""Only the send is waited for: the next block may not have arrived."""

CHANGE = """
-            receiving.wait()
"""
