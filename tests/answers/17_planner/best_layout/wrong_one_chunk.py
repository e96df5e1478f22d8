"""Stages are never cut into chunks."""

CHANGE = """
-                    cuts = divisors(sizes.layers // pp) if chunked else [1]
+                    cuts = [1]
"""
