"""Which ranks a check speaks of, in words."""

from collections.abc import Iterable

from byhand.check.parts import fail


def fail_on(run, wrong: dict[int, list[str]], sentence: str, lines: Iterable[str] = ()) -> None:
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
        label = f"{named(ranks)}: "
        told += [
            (" " * len(label) if number else label) + text for number, text in enumerate(shared)
        ]
    fail(f"{sentence} {named(wrong)}.", [*told, *lines])


def named(ranks: Iterable[int]) -> str:
    """[1] -> 'rank 1'; [0, 1, 2, 3] -> 'ranks 0 to 3'."""
    names = [str(rank) for rank in ranks]
    if len(names) == 1:
        return f"rank {names[0]}"
    if len(names) > 3 and int(names[-1]) - int(names[0]) == len(names) - 1:
        return f"ranks {names[0]} to {names[-1]}"
    return f"ranks {', '.join(names[:-1])} and {names[-1]}"


def at(value, rank: int):
    """A rank's own member of a list; what is no list holds for every rank."""
    return value[rank] if isinstance(value, list | tuple) else value
