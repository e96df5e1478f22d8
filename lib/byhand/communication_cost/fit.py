"""Alpha and beta from measurements: a line that a few bad measurements do not move. Pure.

Seconds of communication scatter by a share of themselves, and some measurements are far off: the
processor was busy elsewhere. So the residuals are relative, (measured - predicted) / predicted, and
over the measurement's own doubt where that is known. One beyond 1.345 standard deviations counts
less, the farther the less (Huber's weights, found by reweighted least squares; the deviation is
estimated from the median residual).

Intervals come from a bootstrap: the scatter about the line, drawn anew, makes measurements that
might have been, and each such set is fitted again. Pure Python; the same measurements give the
same numbers.
Sources: Huber 1964; Holland and Welsch 1977; Efron 1979.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from byhand.communication_cost.model import AlphaBeta, Cost

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
    scatter: tuple[float, ...]  # log(measured / predicted) over the doubt, of each measurement
    resampled: tuple[AlphaBeta, ...]
    confidence: float

    def predict(self, cost: Cost, doubt: float = 1.0) -> Prediction:
        """The seconds of `cost`, and the interval of one new measurement of it, of that doubt."""
        draw = random.Random(0)
        lines = self.resampled * 5
        again = [line.of(cost) * _factor(doubt * draw.choice(self.scatter)) for line in lines]
        return Prediction(self.line.of(cost), *_interval(again, self.confidence))


def fit(
    costs: Sequence[Cost],
    seconds: Sequence[float],
    doubts: Sequence[float] | None = None,
    confidence: float = 0.95,
    num_resamples: int = 200,
) -> Fit:
    """Alpha and beta from `seconds` measured for `costs`, robustly; neither comes out negative.

    costs: what was measured, for example `cost("ring", 4, num_bytes)` of each size. doubts: how
    uncertain each measurement is, as a share of itself; None: all alike.

    Raises:
        ValueError: fewer than three measurements, of different lengths, not above 0, or all of one
            size, which no line can be drawn through.
    """
    _check(costs, seconds)
    doubts = [1.0] * len(costs) if doubts is None else list(doubts)
    line = _huber_line(costs, seconds, doubts)
    # Two numbers were fitted, so the measurements lie closer to the line than new ones will.
    wider = (len(costs) / (len(costs) - 2)) ** 0.5
    each = list(zip(costs, seconds, doubts, strict=True))
    scatter = tuple(wider * log(t / line.of(c)) / d for c, t, d in each)
    draw, resampled = random.Random(0), []
    for _ in range(num_resamples):
        again = [line.of(c) * _factor(d * draw.choice(scatter)) for c, _, d in each]
        resampled.append(_huber_line(costs, again, doubts))
    alphas, betas = [r.alpha for r in resampled], [r.beta for r in resampled]
    intervals = _interval(alphas, confidence), _interval(betas, confidence)
    return Fit(line, *intervals, scatter, tuple(resampled), confidence)


def fit_each(
    costs: Mapping[str, Sequence[Cost]], seconds: Mapping[str, Sequence[float]]
) -> dict[str, AlphaBeta]:
    """A line for every algorithm, from its own measurements: what NCCL's tuner chooses by.

    A round of many messages costs more than one of few where ranks share processors, so one alpha
    for all algorithms would not do. costs, seconds: by algorithm.

    Raises:
        ValueError: as `fit`.
    """
    return {name: fit(costs[name], seconds[name], num_resamples=1).line for name in costs}


def least_squares(costs: Sequence[Cost], seconds: Sequence[float]) -> AlphaBeta:
    """What a spreadsheet fits: the largest measurements decide, and one bad one is enough."""
    return _weighted_line(costs, seconds, [1.0] * len(costs))


def _huber_line(
    costs: Sequence[Cost], seconds: Sequence[float], doubts: Sequence[float]
) -> AlphaBeta:
    each = list(zip(seconds, doubts, strict=True))
    line = _weighted_line(costs, seconds, [1 / (t * d) ** 2 for t, d in each])
    for _ in range(ROUNDS_OF_WEIGHTS):
        units = [line.of(c) * d for c, d in zip(costs, doubts, strict=True)]
        residuals = [(t - line.of(c)) / u for c, t, u in zip(costs, seconds, units, strict=True)]
        allowed = HUBER * DEVIATION_FROM_MEDIAN * median(map(abs, residuals)) + 1e-9
        weights = [
            min(1, allowed / max(abs(r), 1e-12)) / u**2
            for r, u in zip(residuals, units, strict=True)
        ]
        before, line = line, _weighted_line(costs, seconds, weights)
        if line == before:
            break
    return line


def _factor(scatter: float) -> float:
    """What a measurement is off by: at most seven times."""
    return exp(max(-2.0, min(2.0, scatter)))


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
    if area <= 1e-12 * rr * bb:  # all the weight lies on one size
        return AlphaBeta(0.0, bt / bb)
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
