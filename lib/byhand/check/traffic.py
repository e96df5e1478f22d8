"""What a run sent and held against what it may: calls, messages, bytes and memory, by rank."""

from collections import Counter
from collections.abc import Iterable, Sequence

from byhand.check.parts import fail
from byhand.check.ranks import at, lines_by_rank, named

OPERATIONS = (
    "all_reduce all_gather reduce_scatter broadcast reduce scatter gather all_to_all "
    "send recv barrier"
).split()


def communication(run, rank: int | None = None, **counts: int | Sequence[int]) -> None:
    """Each rank makes exactly these calls and no other: `all_reduce=1`, or by rank `send=[1, 0]`.

    With `rank`, only that rank is looked at.
    """
    unknown = set(counts) - set(OPERATIONS)
    if unknown:
        raise ValueError(f"no such operation: {', '.join(unknown)}; there are {OPERATIONS}")
    wrong = {}
    for here in range(run.world_size) if rank is None else [rank]:
        asked = {op: at(count, here) for op, count in counts.items()}
        calls = [event for event in run.ledger.events if event.rank == here]
        made = Counter(event.op for event in calls)
        ops = [op for op in OPERATIONS if made[op] != asked.get(op, 0)]
        if ops:
            wrong[here] = [_count_line(op, calls, asked.get(op, 0)) for op in ops]
    if wrong:
        fail(
            f"the number of communication calls is wrong on {named(wrong)}.",
            lines_by_rank(run, wrong),
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
        fail(f"{sum(sent.values())} messages were sent, {total} are enough.", [listed])
    if per_rank is not None:
        by_rank = Counter(event.rank for event in run.ledger.events if event.op == "send")
        _at_most(run, by_rank, per_rank, "messages", [listed])
    if pairs is not None and sent != (asked := Counter(map(tuple, pairs))):
        lines = [f"missing: {_pairs(asked - sent)}"] if asked - sent else []
        lines += [f"not asked for: {_pairs(sent - asked)}"] if sent - asked else []
        fail("the messages are not the ones asked for.", [*lines, listed])


def sent_bytes(run, at_most: int | Sequence[int] | None = None, total: int | None = None) -> None:
    """Each rank sends no more than `at_most` bytes, and all ranks together exactly `total`."""
    by_rank = Counter()
    for event in run.ledger.events:
        by_rank[event.rank] += event.sent_bytes
    if at_most is not None:
        _at_most(run, by_rank, at_most, "bytes", [])
    if total is not None and (got := sum(by_rank.values())) != total:
        lines = [f"rank {rank}: {by_rank[rank]} bytes" for rank in range(run.world_size)]
        fail(f"{got} bytes were sent in all, expected {total}{_times(got, total)}.", lines)


def peak_bytes(run, at_most: int | Sequence[int]) -> None:
    """No rank ever held more than `at_most` bytes of tensors at one moment.

    Raises:
        ValueError: the launch was not made with memory=True, so nothing is known.
    """
    if run.peak_bytes is None:
        raise ValueError("peak_bytes needs a launch made with memory=True: this one's was not")
    wrong = {}
    for rank in range(run.world_size):
        got, limit = run.peak_bytes[rank], at(at_most, rank)
        if got > limit:
            wrong[rank] = [f"held {got} bytes of tensors at once, at most {limit} are allowed"]
    if wrong:
        fail(f"{named(wrong)} held too much memory at once.", lines_by_rank(run, wrong))


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
        fail(
            "only send and recv are allowed here.", lines_by_rank(run, dict(sorted(wrong.items())))
        )


def _pairs(pairs: Counter) -> str:
    return ", ".join(
        f"{sender}→{receiver}" + (f" ({count} times)" if count > 1 else "")
        for (sender, receiver), count in sorted(pairs.items())
    )


def _at_most(run, got: Counter, limits, unit: str, lines: list[str]) -> None:
    wrong = {}
    for rank in range(run.world_size):
        sent, limit = got[rank], at(limits, rank)
        if sent > limit:
            wrong[rank] = [f"sent {sent} {unit}, {limit} are enough{_times(sent, limit)}"]
    if wrong:
        fail(f"{named(wrong)} sent too many {unit}.", [*lines_by_rank(run, wrong), *lines])


def _times(got: int, enough: int) -> str:
    return f" ({got / enough:.3g} times as many)" if enough and got >= 1.05 * enough else ""
