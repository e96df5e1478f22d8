"""What a program returned against what it should: values, by rank."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from byhand.check.differences import difference
from byhand.check.errors import KINDS
from byhand.check.parts import fail
from byhand.check.ranks import fail_on, one_each
from byhand.runtime.run import Run


def equal(got: object, expected: object, what: str = "the result") -> None:
    """`got` is exactly `expected`: type, shape, dtype and every element.

    >>> equal(torch.tensor([1, 2]), torch.tensor([1, 3]))
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: the result is wrong. got [1, 2] expected [1, 3] 1 of 2
        elements differ, the first at [1]: 2, expected 3
    """
    close(got, expected, what, tolerance=0.0)


def close(
    got: object, expected: object, what: str = "the result", tolerance: float = 1e-10
) -> None:
    """As `equal`, but floats may differ by `tolerance` * max(1, |expected|).

    >>> close(0.1 + 0.2, 0.3)
    >>> close(0.31, 0.3, what="the loss")
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: the loss is wrong. got 0.31 expected 0.3
    """
    if lines := difference(got, expected, tolerance):
        fail(f"{what} is wrong.", lines)


def that(condition: bool, sentence: str, of: str = "values") -> None:
    """`condition` holds; if not, `sentence` says what was got and what was expected.

    `of`: what it looks at, "values", "calls", "messages", "bytes" or "memory". Of a hidden part
    that is all that is said.

    Raises:
        ValueError: there is no such kind.

    >>> that(2 + 2 == 5, "got 4, expected 5")
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: got 4, expected 5
    """
    if of not in KINDS:
        raise ValueError(f"a check is of {', '.join(KINDS)}, not of {of!r}")
    if condition is not True:
        fail(sentence, of=of)


def changed(names: Iterable[str], tensors: Iterable[Tensor], before: Iterable[Tensor]) -> list[str]:
    """The names of those tensors that are not as they were before.

    >>> x = torch.zeros(2)
    >>> before = x.clone()
    >>> x += 1
    >>> changed(["x"], [x], [before])
    ['x']
    """
    pairs = zip(names, tensors, before, strict=True)
    return [name for name, now, was in pairs if not now.equal(was)]


def results(
    run: Run,
    expected: Sequence,
    what: str = "the result",
    tolerance: float = 0.0,
    member: int | str | None = None,
) -> None:
    """Rank r returned `expected[r]`, for every rank r; or has it as that `member` of its result.

    >>> run = launch(lambda rank, world_size: rank, 2)
    >>> results(run, [0, 2])
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: the result is wrong on rank 1. rank 0: right rank 1: got
        1 expected 2 Every element is 2 times too small, and there are as many ranks: is a
        mean where a sum is asked, or is a share missing?
    """
    got = run.results if member is None else [result[member] for result in run.results]
    wrong = {}
    for rank, right in enumerate(one_each(expected, run)):
        if lines := difference(got[rank], right, tolerance, run.world_size):
            wrong[rank] = lines + _belongs_to(got[rank], expected, tolerance)
    fail_on(run, wrong, f"{what} is wrong on")


def _belongs_to(got: object, expected: Sequence, tolerance: float) -> list[str]:
    """A hint where a rank has what another should have."""
    others = (r for r, theirs in enumerate(expected) if not difference(got, theirs, tolerance))
    other = None if got is None else next(others, None)
    return [] if other is None else [f"This is what rank {other} should have."]
