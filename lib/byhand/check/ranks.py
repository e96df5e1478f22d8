"""Which ranks a check speaks of, in words."""

from collections.abc import Iterable


def lines_by_rank(run, wrong: dict[int, list[str]]) -> list[str]:
    """The lines of every rank, under one label for ranks that have the same lines."""
    ranks_of: dict[tuple[str, ...], list[int]] = {}
    for rank in range(run.world_size):
        ranks_of.setdefault(tuple(wrong.get(rank, ["right"])), []).append(rank)
    lines = []
    for shared, ranks in ranks_of.items():
        label = f"{named(ranks)}: "
        for line in shared:
            lines.append(label + line)
            label = " " * len(label)
    return lines


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
