"""scipy's solver of integer programmes, which any notebook may import."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least=}, {num_bytes=}")
    whole = sum(layer.whole_bytes for layer in layers)
    if whole <= num_bytes:
        return []
    freed = np.array([layer.whole_bytes - layer.recomputed_bytes for layer in layers], float)
    work = np.array([layer.work for layer in layers], float)
    found = milp(
        work,
        constraints=LinearConstraint(freed[None], whole - num_bytes, np.inf),
        integrality=np.ones(len(work)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    return [number for number, x in enumerate(found.x) if x > 0.5]
