"""What a program returned against what it should: values, by rank."""

from collections.abc import Sequence

from byhand.check.differences import difference
from byhand.check.parts import fail
from byhand.check.ranks import lines_by_rank, named


def equal(got, expected, what: str = "the result") -> None:
    """`got` is exactly `expected`: type, shape, dtype and every element."""
    _compare(got, expected, what, 0.0)


def close(got, expected, what: str = "the result", tolerance: float = 1e-10) -> None:
    """As `equal`, but floats may differ by `tolerance` * max(1, |expected|)."""
    _compare(got, expected, what, tolerance)


def that(condition: bool, sentence: str) -> None:
    """`condition` holds; if not, `sentence` says what was got and what was expected."""
    if condition is not True:
        fail(sentence)


def results(
    run,
    expected: Sequence,
    what: str = "the result",
    tolerance: float = 0.0,
    member: int | str | None = None,
) -> None:
    """Rank r returned `expected[r]`, for every rank r; or has it as that `member` of its result."""
    got = run.results if member is None else [result[member] for result in run.results]
    wrong = {}
    for rank in range(run.world_size):
        if lines := difference(got[rank], expected[rank], tolerance, run.world_size):
            wrong[rank] = lines + _belongs_to(got[rank], expected, rank, tolerance)
    if wrong:
        fail(f"{what} is wrong on {named(wrong)}.", lines_by_rank(run, wrong))


def _compare(got, expected, what: str, tolerance: float) -> None:
    if lines := difference(got, expected, tolerance):
        fail(f"{what} is wrong.", lines)


def _belongs_to(got, expected: Sequence, rank: int, tolerance: float) -> list[str]:
    if got is None:
        return []
    for other, theirs in enumerate(expected):
        if other != rank and not difference(got, theirs, tolerance):
            return [f"This is what rank {other} should have."]
    return []
