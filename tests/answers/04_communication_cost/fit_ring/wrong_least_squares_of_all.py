"""Plain least squares through everything, the bad ones too."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    rows = [[2 * (p - 1), 2 * (p - 1) * m / p] for p, m, _ in measurements]
    rows = torch.tensor(rows, dtype=torch.float64)
    seconds = torch.tensor([[t] for _, _, t in measurements], dtype=torch.float64)
    scale = rows.amax(dim=0)
    solved = torch.linalg.lstsq(rows / scale, seconds).solution[:, 0] / scale
    return solved[0].item(), solved[1].item()
