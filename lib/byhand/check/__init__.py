"""Checks that exercises are graded with: values, communication, and memory, by rank.

A test cell launches a driver, works out what is expected, and asks:

    with check.part("three ranks, odd sizes"):
        tensors = [check.whole_numbers(5) for rank in range(3)]
        run = launch(drive, 3, args=(PerRank(tensors),))
        check.results(run, [sum(tensors)] * 3, what="all_reduce's result")
        check.communication(run, send=4, recv=4)

Every check passes silently or raises CheckError, whose message names the part, the ranks, what
was got and what was expected. Inputs are random, but every part draws the same ones again each
time it runs with the same seed, whatever ran before it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from byhand.check.differences import difference

OPERATIONS = (
    "all_reduce all_gather reduce_scatter broadcast reduce scatter gather all_to_all "
    "send recv barrier"
).split()

_state = {"seed": 0, "part": None}
_generator = torch.Generator().manual_seed(0)


class CheckError(AssertionError):
    """A check failed. `.part` names the part of the test (or None), `.message` says why."""

    def __init__(self, message: str, part: str | None = None):
        super().__init__(f"{part}: {message}" if part else message)
        self.part, self.message = part, message

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, not the lines of the test."""
        return [f"CheckError: {self}"]


@contextmanager
def part(name: str) -> Iterator[None]:
    """Name a part of a test: every failure inside begins with `name`.

    A CheckError carries `name` as `.part`; any other exception keeps its type and gets `.part`
    and a note. The random inputs inside depend on the seed and on `name` alone. A part inside a
    part adds its name to the outer one's.
    """
    before = _state["part"]
    name = f"{before}, {name}" if before else name
    _state["part"] = name
    _restart_generator()
    try:
        yield
    except Exception as error:
        if not hasattr(error, "part"):
            error.part = name
            error.add_note(f"This happened in the part of the test named: {name}")
        raise
    finally:
        _state["part"] = before


def set_seed(seed: int) -> None:
    """Draw other random inputs from here on; the seed at the start is 0."""
    _state["seed"] = seed
    _restart_generator()


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A tensor of normally distributed numbers."""
    return torch.randn(shape, generator=_generator, dtype=dtype)


def whole_numbers(
    *shape: int, low: int = 1, high: int = 100, dtype: torch.dtype = torch.float64
) -> Tensor:
    """A tensor of whole numbers from `low` to `high` - 1: their sums are exact in any order."""
    return torch.randint(low, high, shape, generator=_generator).to(dtype)


def equal(got, expected, what: str = "the result") -> None:
    """`got` is exactly `expected`: type, shape, dtype and every element."""
    _compare(got, expected, what, 0.0)


def close(got, expected, what: str = "the result", tolerance: float = 1e-10) -> None:
    """As `equal`, but floats may differ by `tolerance` * max(1, |expected|)."""
    _compare(got, expected, what, tolerance)


def that(condition: bool, sentence: str) -> None:
    """`condition` holds; if not, `sentence` says what was got and what was expected."""
    if condition is not True:
        _fail(sentence)


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
        _fail(f"{what} is wrong on {_ranks(wrong)}.", _by_rank(run, wrong))


def communication(run, rank: int | None = None, **counts: int | Sequence[int]) -> None:
    """Each rank makes exactly these calls and no other: `all_reduce=1`, or by rank `send=[1, 0]`.

    With `rank`, only that rank is looked at.
    """
    unknown = set(counts) - set(OPERATIONS)
    if unknown:
        raise ValueError(f"no such operation: {', '.join(unknown)}; there are {OPERATIONS}")
    wrong = {}
    for here in range(run.world_size) if rank is None else [rank]:
        asked = {op: _at(count, here) for op, count in counts.items()}
        calls = [event for event in run.ledger.events if event.rank == here]
        made = Counter(event.op for event in calls)
        ops = [op for op in OPERATIONS if made[op] != asked.get(op, 0)]
        if ops:
            wrong[here] = [_count_line(op, calls, asked.get(op, 0)) for op in ops]
    if wrong:
        _fail(
            f"the number of communication calls is wrong on {_ranks(wrong)}.", _by_rank(run, wrong)
        )


def messages(
    run,
    total: int | None = None,
    per_rank: int | Sequence[int] | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> None:
    """Only send and recv are used; at most `total` messages in all, at most `per_rank` each.

    `pairs` asks for exactly these messages, as (sender, receiver), in any order.
    """
    _only_send_and_recv(run)
    sent = Counter((event.rank, event.peer) for event in run.ledger.events if event.op == "send")
    listed = "messages sent: " + (_pairs(sent) or "none")
    if total is not None and sum(sent.values()) > total:
        _fail(f"{sum(sent.values())} messages were sent, {total} are enough.", [listed])
    if per_rank is not None:
        by_rank = Counter(event.rank for event in run.ledger.events if event.op == "send")
        _at_most(run, by_rank, per_rank, "messages", [listed])
    if pairs is not None and sent != (asked := Counter(map(tuple, pairs))):
        lines = [f"missing: {_pairs(asked - sent)}"] if asked - sent else []
        lines += [f"not asked for: {_pairs(sent - asked)}"] if sent - asked else []
        _fail("the messages are not the ones asked for.", [*lines, listed])


def sent_bytes(run, at_most: int | Sequence[int] | None = None, total: int | None = None) -> None:
    """Each rank sends no more than `at_most` bytes, and all ranks together exactly `total`."""
    by_rank = Counter()
    for event in run.ledger.events:
        by_rank[event.rank] += event.sent_bytes
    if at_most is not None:
        _at_most(run, by_rank, at_most, "bytes", [])
    if total is not None and (got := sum(by_rank.values())) != total:
        lines = [f"rank {rank}: {by_rank[rank]} bytes" for rank in range(run.world_size)]
        _fail(f"{got} bytes were sent in all, expected {total}{_times(got, total)}.", lines)


def peak_bytes(run, at_most: int | Sequence[int]) -> None:
    """No rank ever held more than `at_most` bytes of tensors at one moment.

    Raises:
        ValueError: the launch was not made with memory=True, so nothing is known.
    """
    if run.peak_bytes is None:
        raise ValueError("peak_bytes needs a launch made with memory=True: this one's was not")
    wrong = {}
    for rank in range(run.world_size):
        got, limit = run.peak_bytes[rank], _at(at_most, rank)
        if got > limit:
            wrong[rank] = [f"held {got} bytes of tensors at once, at most {limit} are allowed"]
    if wrong:
        _fail(f"{_ranks(wrong)} held too much memory at once.", _by_rank(run, wrong))


def _restart_generator() -> None:
    digest = hashlib.sha256(f"{_state['seed']}:{_state['part']}".encode()).digest()
    _generator.manual_seed(int.from_bytes(digest[:7], "big"))


def _fail(sentence: str, lines: Iterable[str] = ()) -> None:
    raise CheckError("\n".join([sentence, *(f"  {line}" for line in lines)]), _state["part"])


def _compare(got, expected, what: str, tolerance: float) -> None:
    if lines := difference(got, expected, tolerance):
        _fail(f"{what} is wrong.", lines)


def _belongs_to(got, expected: Sequence, rank: int, tolerance: float) -> list[str]:
    if got is None:
        return []
    for other, theirs in enumerate(expected):
        if other != rank and not difference(got, theirs, tolerance):
            return [f"This is what rank {other} should have."]
    return []


def _by_rank(run, wrong: dict[int, list[str]]) -> list[str]:
    """The lines of every rank, under one label for ranks that have the same lines."""
    ranks_of: dict[tuple[str, ...], list[int]] = {}
    for rank in range(run.world_size):
        ranks_of.setdefault(tuple(wrong.get(rank, ["right"])), []).append(rank)
    lines = []
    for shared, ranks in ranks_of.items():
        label = f"{_ranks(ranks)}: "
        for line in shared:
            lines.append(label + line)
            label = " " * len(label)
    return lines


def _ranks(ranks: Iterable[int]) -> str:
    names = [str(rank) for rank in ranks]
    if len(names) == 1:
        return f"rank {names[0]}"
    if len(names) > 3 and int(names[-1]) - int(names[0]) == len(names) - 1:
        return f"ranks {names[0]} to {names[-1]}"
    return f"ranks {', '.join(names[:-1])} and {names[-1]}"


def _at(value, rank: int):
    return value[rank] if isinstance(value, list | tuple) else value


def _count_line(op: str, calls: list, asked: int) -> str:
    sources = [event.source for event in calls if event.op == op]
    where = f" ({', '.join(dict.fromkeys(sources))})" if sources else ""
    return f"{op}: got {len(sources)}, expected {asked}{where}"


def _only_send_and_recv(run) -> None:
    wrong = {}
    for event in run.ledger.events:
        if event.op not in ("send", "recv"):
            wrong.setdefault(event.rank, []).append(f"called {event.op} ({event.source})")
    if wrong:
        _fail("only send and recv are allowed here.", _by_rank(run, dict(sorted(wrong.items()))))


def _pairs(pairs: Counter) -> str:
    return ", ".join(
        f"{sender}→{receiver}" + (f" ({count} times)" if count > 1 else "")
        for (sender, receiver), count in sorted(pairs.items())
    )


def _at_most(run, got: Counter, limits, unit: str, lines: list[str]) -> None:
    wrong = {}
    for rank in range(run.world_size):
        sent, limit = got[rank], _at(limits, rank)
        if sent > limit:
            wrong[rank] = [f"sent {sent} {unit}, {limit} are enough{_times(sent, limit)}"]
    if wrong:
        _fail(f"{_ranks(wrong)} sent too many {unit}.", [*_by_rank(run, wrong), *lines])


def _times(got: int, enough: int) -> str:
    return f" ({got / enough:.3g} times as many)" if enough and got >= 1.05 * enough else ""
