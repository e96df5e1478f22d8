"""The second fastest repetition of each size stands for it; each point weighted by its time."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    repeated = {}
    for num_ranks, num_bytes, seconds in measurements:
        repeated.setdefault((num_ranks, num_bytes), []).append(seconds)
    import numpy

    rows, seconds = [], []
    for (p, m), times in repeated.items():
        rows.append([2 * (p - 1), 2 * (p - 1) * m / p])
        seconds.append(sorted(times)[1])
    rows, seconds = numpy.array(rows), numpy.array(seconds)
    scale = rows.max(axis=0)
    weighted = rows / scale / seconds[:, None]
    solved = numpy.linalg.lstsq(weighted, numpy.ones(len(seconds)), rcond=None)[0]
    return tuple(solved / scale)
