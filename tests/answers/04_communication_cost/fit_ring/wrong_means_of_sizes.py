"""The mean of each size, which the bad ones move."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    repeated = {}
    for num_ranks, num_bytes, seconds in measurements:
        repeated.setdefault((num_ranks, num_bytes), []).append(seconds)
    rows = []
    for (p, m), times in repeated.items():
        middle = statistics.mean(times)
        rows.append([2 * (p - 1) / middle, 2 * (p - 1) * m / p / middle])
    rows = torch.tensor(rows, dtype=torch.float64)
    scale = rows.amax(dim=0)
    ones = torch.ones(len(rows), 1, dtype=torch.float64)
    solved = torch.linalg.lstsq(rows / scale, ones).solution[:, 0] / scale
    return solved[0].item(), solved[1].item()
