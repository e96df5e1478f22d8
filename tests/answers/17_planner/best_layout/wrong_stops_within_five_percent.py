"""The search ends where the bound comes within 5 % of the fewest seconds."""

CHANGE = """
-        if question.at_least(at) >= fewest:
+        if question.at_least(at) >= 0.95 * fewest:
"""
