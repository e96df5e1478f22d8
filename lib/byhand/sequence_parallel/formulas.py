"""What a transformer layer saves for backward and sends, under each way to split it. Pure.

    way                       saved, in bytes of T·D at two bytes a number   sent, of (n-1)/n · T·D
    alone                     34                                             0
    tensor                    10 + 24/n                                      8
    sequence, kept whole      30/n + 4                                       8
    sequence, gathered twice  34/n                                           10

Attention's scores add 2 to 5 times H·S bytes a token, over n where heads are split. Of the 34, two
norms save their input (4), the two column layers theirs (4), two dropouts a mask of one byte (2):
10 that tensor parallelism leaves whole. Queries, keys and values (6), what the output layer mixes
(2), and both sides of the GELU (8 + 8) it splits. *Kept whole* are the gathered inputs of the two
column layers.
Source: Korthikanti et al. 2022, arXiv:2205.05198, table 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from byhand.communication_cost.model import bus_factor
from byhand.costs.counting import crossings, saved
from byhand.costs.layout import Layout
from byhand.costs.model import Part, gpt

WAYS = ("alone", "tensor", "sequence, kept whole", "sequence, gathered twice")


def activation_bytes(
    way: str,
    num_tokens: int,
    num_features: int,
    num_ranks: float,
    itemsize: int = 2,
    scores: float = 0.0,
) -> float:
    """What a rank saves of one layer. The MLP is four times as wide as the layer.

    num_tokens: T, of all sequences. scores: bytes that attention saves for each token, such as
    5 · H · S of the paper, whose probabilities have a dropout; on all ranks together.
    """
    attention, mlp = _layer(way, num_features, itemsize)
    tp: Any = 1 if way == "alone" else num_ranks  # inf too, for what stays on ever more ranks
    layout = Layout(tp=tp, sequence=way.startswith("sequence"))
    halves = replace(attention, scores=scores), mlp
    per_token = sum(saved(half, layout) for half in halves)
    if way == "sequence, kept whole":  # not this rank's tokens alone, of what is entered
        entered = sum(half.enters for half in halves) * num_features * itemsize
        per_token += entered * (1 - 1 / num_ranks)
    return num_tokens * per_token


def sent_bytes(
    way: str, num_tokens: int, num_features: int, num_ranks: int, itemsize: int = 2
) -> dict[str, dict[str, float]]:
    """{"forward": {op: bytes that each rank sends for one layer}, "backward": ...}."""
    halves, size = _layer(way, num_features, itemsize), num_tokens * num_features * itemsize
    found: dict[str, dict[str, float]] = {"forward": {}, "backward": {}}
    for half in halves if way != "alone" else ():
        for when, ops in crossings(half, way.startswith("sequence")).items():
            if when == "backward" and way == "sequence, kept whole":
                ops["all_gather"] -= half.enters
            for op, count in ops.items():
                sent = count * bus_factor(op, num_ranks) * size
                found[when][op] = found[when].get(op, 0.0) + sent
    return found


def check_way(way: str) -> None:
    """Accept one of WAYS.

    Raises:
        ValueError: it is none of them.
    """
    if way not in WAYS:
        raise ValueError(f"no way is called {way!r}; there are {', '.join(map(repr, WAYS))}")


def _layer(way: str, num_features: int, itemsize: int) -> tuple[Part, Part]:
    """Attention and MLP, whatever the heads and positions: neither counts but in the scores."""
    check_way(way)
    _, attention, mlp, *_ = gpt(1, num_features, 1, 1, 1, itemsize=itemsize).parts
    return attention, mlp
