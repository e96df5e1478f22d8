"""More stages than layers are not refused: some stages are empty."""

CHANGE = """
-    if num_stages > num_layers:
-        raise ValueError(f"{num_layers} layers cannot make {num_stages} stages")
"""
