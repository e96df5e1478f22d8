"""Stages are always cut into as many chunks as can be."""

CHANGE = """
-                    cuts = divisors(sizes.layers // pp) if chunked else [1]
+                    cuts = divisors(sizes.layers // pp)[-1:] if chunked else [1]
"""
