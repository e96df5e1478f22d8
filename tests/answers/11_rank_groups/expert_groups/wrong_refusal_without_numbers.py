"""The world that does not fit is refused in general terms."""

CHANGE = """
-        raise ValueError(f"{world_size} ranks are not a multiple of the experts' {copy}")
+        raise ValueError("the experts do not fit")
"""
