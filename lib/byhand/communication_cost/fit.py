"""Alpha and beta from measurements: a line that a few bad measurements do not move. Pure.

Seconds of communication scatter by a share of themselves, and some measurements are far off: the
processor was busy elsewhere. So a residual is log(measured / predicted), over the measurement's own
doubt, and one beyond 1.345 doubts counts less, the farther the less (Huber's loss). Intervals come
from a bootstrap: the scatter about the line, drawn anew, makes measurements that might have been,
and each such set is fitted again. The same measurements give the same numbers.
Sources: Huber 1964; Efron 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from byhand.communication_cost.model import AlphaBeta, Cost
from byhand.words import counted

HUBER = 1.345  # 95 % as good as least squares where nothing is bad
DOUBT = 0.05  # of a measurement, as a share of itself, where nothing is known of it


class Prediction(NamedTuple):
    """What a size not measured will take, and between what a new measurement should lie."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted line, and what intervals need: the measurements, and their scatter about it."""

    line: AlphaBeta
    table: np.ndarray  # rounds and bytes of each
    doubts: np.ndarray
    scatter: np.ndarray

    @cached_property
    def resampled(self) -> np.ndarray:
        """Alpha and beta of measurements that might have been, [100, 2]."""
        on_the_line = self.table @ (self.line.alpha, self.line.beta)

        def fit_again(scatter: np.ndarray) -> np.ndarray:
            return _huber(self.table, on_the_line * _factor(scatter * self.doubts), self.doubts)

        options = {"vectorized": False, "n_resamples": 100, "method": "percentile", "rng": 0}
        return stats.bootstrap((self.scatter,), fit_again, **options).bootstrap_distribution.T

    def predict(self, cost: Cost, doubt: float = DOUBT) -> Prediction:
        """The seconds of `cost`, and the interval of one new measurement of it, of that doubt."""
        lines = np.repeat(self.resampled, 10, axis=0)
        scatter = np.random.default_rng(0).choice(self.scatter, len(lines))
        might_be = lines @ (cost.rounds, cost.num_bytes) * _factor(scatter * doubt)
        return Prediction(self.line.of(cost), *_middle(might_be))


def fit(
    costs: Sequence[Cost], seconds: Sequence[float], doubts: Sequence[float] | None = None
) -> Fit:
    """Alpha and beta from `seconds` measured for `costs`, robustly; neither comes out negative.

    costs: what was measured, for example `cost("ring", 4, num_bytes)` of each size. doubts: how
    uncertain each measurement is, as a share of itself; None: all alike.

    Raises:
        ValueError: fewer than three measurements, of different lengths, not above 0, of one rank
            alone, or all of one size, which no line can be drawn through.
    """
    _check(costs, seconds)
    table, measured = _table(costs), np.array(seconds)
    uncertainty = np.array(doubts or [DOUBT] * len(costs))
    alpha, beta = _huber(table, measured, uncertainty)
    # Two numbers were fitted, so the measurements lie closer to the line than new ones will.
    wider = (len(costs) / (len(costs) - 2)) ** 0.5
    scatter = wider * np.log(measured / (table @ (alpha, beta))) / uncertainty
    return Fit(AlphaBeta(float(alpha), float(beta)), table, uncertainty, scatter)


def _huber(table: np.ndarray, seconds: np.ndarray, doubts: np.ndarray) -> np.ndarray:
    most = (seconds[:, None] / table).min(axis=0)  # neither can be above what one point took

    def residuals(shares: np.ndarray) -> np.ndarray:
        return np.log(seconds / (table @ (shares * most))) / doubts

    robust = {"loss": "huber", "f_scale": HUBER, "bounds": (0, np.inf)}
    return optimize.least_squares(residuals, np.ones(2), **robust).x * most


def _table(costs: Sequence[Cost]) -> np.ndarray:
    return np.array([(cost.rounds, cost.num_bytes) for cost in costs], dtype=float)


def _factor(scatter: np.ndarray) -> np.ndarray:
    return np.exp(scatter.clip(-2, 2))  # seven times off at most


def _middle(values: np.ndarray) -> tuple[float, float]:
    return tuple(np.quantile(values, (0.025, 0.975)).tolist())


def _check(costs: Sequence[Cost], seconds: Sequence[float]) -> None:
    if len(costs) != len(seconds):
        raise ValueError(f"{len(costs)} costs, but {len(seconds)} times: one time for each cost")
    if len(costs) < 3:
        few = counted(len(costs), "measurement")
        raise ValueError(f"{few}: a line and its doubt need 3 at least")
    if min(seconds) <= 0:
        raise ValueError(f"a measurement of {min(seconds)} seconds: all must be above 0")
    if not all(cost.rounds for cost in costs):
        raise ValueError("a cost has 0 rounds: one rank alone sends nothing, measure 2 at least")
    ratios = [cost.num_bytes / cost.rounds for cost in costs]
    if min(ratios) == max(ratios):
        raise ValueError("all measurements are of one size per round: vary the size")
