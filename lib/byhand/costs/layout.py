"""How a model is laid out over ranks: degrees, order, and what each rank does with memory. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields

from byhand.rank_groups.grid import ORDER, RankGrid, rank_groups
from byhand.words import counted

RECOMPUTE = "none", "selective", "full"


_IN_WORDS = {"zero": "ZeRO", "sequence": "sequence parallelism", "light_ends": "light ends"}


@dataclass(frozen=True)
class Layout:
    """Degrees and order as byhand.rank_groups has them, and the rest of a step's settings.

    dp: replicas, those of cp not counted. rows: sequences of a micro-batch. chunks: of the model on
    a stage; more than one is interleaved 1F1B. zero: the stage, 0 to 3, over dp and cp. sequence:
    between the layers that tp splits, its ranks share the tokens. recompute: what backward computes
    again: "none", attention's scores ("selective"), or all of a block but its input ("full").
    light_ends: where stages share blocks out, the table and the head count as a block each.

    Raises:
        ValueError: a degree below 1, an ep that does not divide dp x cp, an unknown stage of ZeRO
            or way to recompute.

    >>> layout = Layout(dp=4, tp=2, pp=2, rows=2)
    >>> layout.num_ranks, layout.num_micro_batches(64)
    (16, 8)
    >>> layout.groups["tp"][:2]
    [[0, 1], [2, 3]]
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    order: str = ORDER
    rows: int = 1
    chunks: int = 1
    zero: int = 0
    sequence: bool = False
    recompute: str = "none"
    light_ends: bool = False

    def __post_init__(self) -> None:
        for name in ("dp", "tp", "pp", "cp", "ep", "rows", "chunks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.dp * self.cp % self.ep:
            raise ValueError(
                f"{counted(self.dp * self.cp, 'rank')} of dp {self.dp} × cp {self.cp} cannot share "
                f"experts by ep {self.ep}: it must divide them"
            )
        if self.zero not in range(4):
            raise ValueError(f"zero is {self.zero}: ZeRO has the stages 1, 2 and 3, and 0 is none")
        if self.recompute not in RECOMPUTE:
            raise ValueError(f"recompute is {self.recompute!r}; known are {', '.join(RECOMPUTE)}")

    def __str__(self) -> str:
        """dp, tp and pp, and what else differs from one rank alone.

        >>> print(Layout(dp=4, tp=2, zero=1, sequence=True))
        dp 4 · tp 2 · pp 1 · ZeRO 1 · sequence parallelism
        """
        always, more = ("dp", "tp", "pp"), []
        for field in fields(self):
            name, value = _IN_WORDS.get(field.name, field.name), getattr(self, field.name)
            if field.name in always or value != field.default:
                more.append(name if value is True else f"{name} {value}")
        return " · ".join(more)

    @property
    def num_ranks(self) -> int:
        """Of the world."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def grid(self) -> RankGrid:
        """Which ranks are in which group."""
        return RankGrid(self.num_ranks, self.tp, self.cp, self.ep, self.pp, order=self.order)

    @property
    def groups(self) -> dict[str, list[list[int]]]:
        """Lists of ranks by name, as byhand.rank_groups has them."""
        degrees = {"tp": self.tp, "cp": self.cp, "ep": self.ep, "pp": self.pp}
        return rank_groups(self.num_ranks, **degrees, order=self.order)

    @property
    def expert_dp(self) -> int:
        """How many copies of an expert there are."""
        return self.dp * self.cp // self.ep

    def num_micro_batches(self, num_sequences: int) -> int:
        """Of one replica in a step on that many sequences.

        Raises:
            ValueError: the sequences do not make whole micro-batches on every replica.
        """
        number, more = divmod(num_sequences, self.dp * self.rows)
        if more or number < 1:
            raise ValueError(
                f"{num_sequences} sequences do not make micro-batches of {self.rows} on {self.dp} "
                f"replicas: they must be a multiple of {self.dp * self.rows}, and more than none"
            )
        return number


def layouts(num_ranks: int, order: str = ORDER, **limits: int) -> list[Layout]:
    """Every way to write the ranks as dp x tp x pp, and x cp or ep where a limit allows them.

    limits: the most of a degree, by name; cp and ep are 1 where they are not named.

    Raises:
        ValueError: a limit of something that is no degree.

    >>> for layout in layouts(4):
    ...     print(layout)
    dp 4 · tp 1 · pp 1
    dp 2 · tp 1 · pp 2
    dp 1 · tp 1 · pp 4
    dp 2 · tp 2 · pp 1
    dp 1 · tp 2 · pp 2
    dp 1 · tp 4 · pp 1
    """
    axes = "tp", "pp", "cp", "ep"
    if unknown := set(limits) - {*axes, "dp"}:
        raise ValueError(f"no degree is called {min(unknown)}; there are dp, {', '.join(axes)}")
    most = {"dp": num_ranks, "tp": num_ranks, "pp": num_ranks, "cp": 1, "ep": 1} | limits
    found = []
    for tp, pp, cp in itertools.product(*(_divisors(num_ranks, most[axis]) for axis in axes[:3])):
        dp, more = divmod(num_ranks, tp * pp * cp)
        if more or dp > most["dp"]:
            continue
        found += [Layout(dp, tp, pp, cp, ep, order) for ep in _divisors(dp * cp, most["ep"])]
    return found


def _divisors(number: int, most: int) -> Iterator[int]:
    return (each for each in range(1, min(number, most) + 1) if number % each == 0)
