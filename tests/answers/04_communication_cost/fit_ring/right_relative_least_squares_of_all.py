"""Least squares of relative errors: a time thirty times too long weighs next to nothing."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    rows = [[2 * (p - 1) / t, 2 * (p - 1) * m / p / t] for p, m, t in measurements]
    rows = torch.tensor(rows, dtype=torch.float64)
    scale = rows.amax(dim=0)
    ones = torch.ones(len(rows), 1, dtype=torch.float64)
    solved = torch.linalg.lstsq(rows / scale, ones).solution[:, 0] / scale
    return solved[0].item(), solved[1].item()
