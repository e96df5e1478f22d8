"""Alpha and beta from measurements, with intervals: a line that a few bad measurements do not move.

Seconds of communication scatter by a share of themselves, and some measurements are far off: the
processor was busy elsewhere. So the residuals are relative, (measured - predicted) / predicted, and
one beyond 1.345 standard deviations counts less, the farther the less (Huber's weights, found by
reweighted least squares; the deviation is estimated from the median residual).

Intervals come from a bootstrap: the scatter about the line, drawn anew, makes measurements that
might have been, and each such set is fitted again. Pure Python; the same measurements give the same numbers.
Sources: Huber 1964; Holland and Welsch 1977; Efron 1979.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from byhand.communication_cost import AlphaBeta, Cost

HUBER = 1.345  # 95 % as good as least squares where nothing is bad
DEVIATION_FROM_MEDIAN = 1.4826  # of a normal distribution
ROUNDS_OF_WEIGHTS = 30


@dataclass(frozen=True)
class Prediction:
    """What a size not measured will take, and between what a new measurement should lie."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True)
class Fit:
    """A fitted line, the intervals of its two numbers, and what predictions need."""

    line: AlphaBeta
    alpha_interval: tuple[float, float]
    beta_interval: tuple[float, float]
    scatter: tuple[float, ...]  # measured / predicted, of each measurement
    resampled: tuple[AlphaBeta, ...]
    confidence: float

    def predict(self, cost: Cost) -> Prediction:
        """The seconds of `cost`, and the interval of one new measurement of it."""
        draw = random.Random(0)
        again = [line.of(cost) * draw.choice(self.scatter) for line in self.resampled * 5]
        return Prediction(self.line.of(cost), *_interval(again, self.confidence))


def fit(
    costs: Sequence[Cost],
    seconds: Sequence[float],
    confidence: float = 0.95,
    num_resamples: int = 200,
) -> Fit:
    """Alpha and beta from `seconds` measured for `costs`, robustly; neither comes out negative.

    costs: what was measured, for example `cost("ring", 4, num_bytes)` of each size.

    Raises:
        ValueError: fewer than three measurements, of different lengths, not above 0, or all of one
            size, which no line can be drawn through.
    """
    _check(costs, seconds)
    line = _huber_line(costs, seconds)
    # Two numbers were fitted, so the measurements lie closer to the line than new ones will.
    wider = (len(costs) / (len(costs) - 2)) ** 0.5
    scatter = tuple((t / line.of(c)) ** wider for c, t in zip(costs, seconds, strict=True))
    draw, resampled = random.Random(0), []
    for _ in range(num_resamples):
        again = [draw.choice(scatter) * line.of(cost) for cost in costs]
        resampled.append(_huber_line(costs, again))
    alphas, betas = [r.alpha for r in resampled], [r.beta for r in resampled]
    intervals = _interval(alphas, confidence), _interval(betas, confidence)
    return Fit(line, *intervals, scatter, tuple(resampled), confidence)


def least_squares(costs: Sequence[Cost], seconds: Sequence[float]) -> AlphaBeta:
    """What a spreadsheet fits: the largest measurements decide, and one bad one is enough."""
    return _weighted_line(costs, seconds, [1.0] * len(costs))


def _huber_line(costs: Sequence[Cost], seconds: Sequence[float]) -> AlphaBeta:
    line = _weighted_line(costs, seconds, [1 / t**2 for t in seconds])
    for _ in range(ROUNDS_OF_WEIGHTS):
        predicted = [line.of(cost) for cost in costs]
        residuals = [t / p - 1 for t, p in zip(seconds, predicted, strict=True)]
        allowed = HUBER * DEVIATION_FROM_MEDIAN * median(map(abs, residuals)) + 1e-9
        weights = [
            min(1, allowed / abs(r)) / p**2 if r else 1 / p**2
            for r, p in zip(residuals, predicted, strict=True)
        ]
        before, line = line, _weighted_line(costs, seconds, weights)
        if abs(line.alpha - before.alpha) + abs(line.beta - before.beta) == 0:
            break
    return line


def _weighted_line(
    costs: Sequence[Cost], seconds: Sequence[float], weights: Sequence[float]
) -> AlphaBeta:
    """The line of least Σ w (t - alpha·rounds - beta·bytes)², with neither below 0."""
    rr = rb = bb = rt = bt = 0.0
    for cost, t, w in zip(costs, seconds, weights, strict=True):
        r, b = cost.rounds, cost.num_bytes
        rr, rb, bb = rr + w * r * r, rb + w * r * b, bb + w * b * b
        rt, bt = rt + w * r * t, bt + w * b * t
    area = rr * bb - rb * rb
    alpha, beta = (bb * rt - rb * bt) / area, (rr * bt - rb * rt) / area
    if alpha < 0:
        return AlphaBeta(0.0, bt / bb)
    return AlphaBeta(alpha, beta) if beta > 0 else AlphaBeta(rt / rr, 0.0)


def _interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The middle `confidence` of the values."""
    ordered, outside = sorted(values), (1 - confidence) / 2
    last = len(ordered) - 1
    return ordered[round(outside * last)], ordered[round((1 - outside) * last)]


def _check(costs: Sequence[Cost], seconds: Sequence[float]) -> None:
    if len(costs) != len(seconds):
        raise ValueError(f"{len(costs)} costs, but {len(seconds)} times: one time for each cost")
    if len(costs) < 3:
        raise ValueError(f"{len(costs)} measurements: a line and its doubt need 3 at least")
    if min(seconds) <= 0:
        raise ValueError(f"a measurement of {min(seconds)} seconds: all must be above 0")
    ratios = [cost.num_bytes / cost.rounds for cost in costs if cost.rounds]
    if len(ratios) < len(costs) or min(ratios) == max(ratios):
        raise ValueError("all measurements are of one size per round: vary the size")
