"""Which ranks a check speaks of, in words."""

from collections.abc import Iterable, Sequence
from typing import Any

from byhand.check.parts import fail
from byhand.runtime.run import Run
from byhand.words import counted, ranks_text


def fail_on(
    run: Run,
    wrong: dict[int, list[str]],
    sentence: str,
    lines: Iterable[str] = (),
    of: str = "values",
) -> None:
    """Raise a CheckError if anything is `wrong`: `sentence`, which the names of those ranks end.

    Below stand the lines of every rank, under one label where they are the same; then `lines`.
    """
    if not wrong:
        return
    ranks_of: dict[tuple[str, ...], list[int]] = {}
    for rank in range(run.world_size):
        ranks_of.setdefault(tuple(wrong.get(rank, ["right"])), []).append(rank)
    told = []
    for shared, ranks in ranks_of.items():
        label = f"{ranks_text(ranks)}: "
        told += [
            (" " * len(label) if number else label) + text for number, text in enumerate(shared)
        ]
    fail(f"{sentence} {ranks_text(wrong)}.", [*told, *lines], of)


def at(value: Any, rank: int, run: Run) -> Any:
    """A rank's own member of a list; what is no list holds for every rank."""
    return one_each(value, run)[rank] if isinstance(value, list | tuple) else value


def one_each(expected: Sequence, run: Run) -> Sequence:
    """What is expected, by rank.

    Raises:
        ValueError: it is of more or fewer ranks than ran.
    """
    if len(expected) != run.world_size:
        raise ValueError(
            f"{counted(len(expected), 'member')} for {counted(run.world_size, 'rank')}: what is"
            " expected by rank has one for each"
        )
    return expected
