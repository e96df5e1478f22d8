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
    whole, shared = _numbers(way)
    masks = 2 * num_features
    per_token = whole * num_features * itemsize + (masks if way == "tensor" else 0)
    split = shared * num_features * itemsize + (0 if way == "tensor" else masks) + scores
    return num_tokens * (per_token + split / (1 if way == "alone" else num_ranks))


def _numbers(way: str) -> tuple[int, int]:
    """How many numbers a token has saved, in units of D: on each rank whole, and split."""
    if way not in WAYS:
        raise ValueError(f"no way is called {way!r}; there are {', '.join(WAYS)}")
    return {"alone": (0, 16), "tensor": (4, 12), "sequence, kept whole": (2, 14)}.get(way, (0, 16))


def sent_bytes(
    way: str, num_tokens: int, num_features: int, num_ranks: int, itemsize: int = 2
) -> dict[str, dict[str, float]]:
    """{"forward": {op: bytes that each rank sends for one layer}, "backward": ...}."""
    _numbers(way)
    unit = (num_ranks - 1) / num_ranks * num_tokens * num_features * itemsize
    if way in ("alone", "tensor"):
        sums = {"all_reduce": 4 * unit} if way == "tensor" else {}
        return {"forward": sums, "backward": dict(sums)}
    forward = {"all_gather": 2 * unit, "reduce_scatter": 2 * unit}
    again = 2 * unit if way == "sequence, gathered twice" else 0.0
    return {
        "forward": forward,
        "backward": {"all_gather": 2 * unit + again, "reduce_scatter": 2 * unit},
    }
