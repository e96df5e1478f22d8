"""What a run sent and held against what it may: calls, messages, bytes and memory, by rank."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from byhand.check.parts import fail
from byhand.check.ranks import at, fail_on
from byhand.runtime.ledger import OPS
from byhand.runtime.run import Run


def communication(run: Run, **counts: int | Sequence[int]) -> None:
    """Each rank makes these calls and no other: `all_reduce=1`, or by rank `send=[1, 0]`.

    >>> run = launch(lambda rank, world_size: dist.all_reduce(torch.ones(1)), 2)
    >>> communication(run, all_reduce=1)
    >>> communication(run, all_gather=1)
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: the number of communication calls is wrong on ranks 0
        and 1. ranks 0 and 1: all_reduce: got 1, expected 0 (... line 1) all_gather: got 0,
        expected 1
    """
    if unknown := set(counts) - set(OPS):
        raise ValueError(f"no such operation: {', '.join(unknown)}; there are {', '.join(OPS)}")
    wrong = {}
    for rank in range(run.world_size):
        made: dict[str, list[str]] = {op: [] for op in OPS}
        for event in run.ledger.events:
            if event.rank == rank:
                made[event.op].append(event.source)
        asked = {op: at(counts.get(op, 0), rank, run) for op in OPS}
        if lines := [_count(op, made[op], asked[op]) for op in OPS if len(made[op]) != asked[op]]:
            wrong[rank] = lines
    fail_on(run, wrong, "the number of communication calls is wrong on", of="calls")


def collectives(run: Run, num_bytes: int = 0, **counts: int | Sequence[int]) -> None:
    """As `communication`, unless a rank is alone; and each sends (n-1)/n of `num_bytes` at most.

    `num_bytes`: those of every whole tensor, twice those of one that is all-reduced.
    """
    if run.world_size > 1:
        communication(run, **counts)
        spare = 8  # bytes, for rounding
        sent_bytes(run, at_most=num_bytes * (run.world_size - 1) // run.world_size + spare)


def messages(
    run: Run,
    total: int | None = None,
    per_rank: int | Sequence[int] | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> None:
    """Only send and recv are used; at most `total` messages in all, at most `per_rank` each.

    `pairs` asks for exactly these messages, as (sender, receiver), in any order.

    >>> def around(rank, world_size):
    ...     dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.ones(1), 0)
    >>> messages(launch(around, 2), total=1, pairs=[(0, 1)])
    >>> messages(launch(around, 2), pairs=[(1, 0)])
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: the messages are not the ones asked for. missing: 1→0
        not asked for: 0→1 messages sent: 0→1
    """
    wrong: dict[int, list[str]] = {}
    for event in sorted(run.ledger.events, key=lambda event: event.rank):
        if event.op not in ("send", "recv"):
            wrong.setdefault(event.rank, []).append(f"called {event.op} ({event.source})")
    fail_on(run, wrong, "only send and recv are allowed here; others were called by", of="calls")
    sent = Counter((event.rank, event.peer) for event in run.ledger.events if event.op == "send")
    listed = "messages sent: " + (_pairs(sent) or "none")
    if total is not None and sum(sent.values()) > total:
        fail(f"{sum(sent.values())} messages were sent, {total} are enough.", [listed], "messages")
    if per_rank is not None:
        by_rank = Counter(event.rank for event in run.ledger.events if event.op == "send")
        _at_most(run, by_rank, per_rank, "messages", "sent", "messages", [listed])
    asked = Counter[tuple[int, int | None]]((sender, to) for sender, to in pairs or ())
    if pairs is not None and sent != asked:
        lines = [f"missing: {_pairs(asked - sent)}"] if asked - sent else []
        lines += [f"not asked for: {_pairs(sent - asked)}"] if sent - asked else []
        fail("the messages are not the ones asked for.", [*lines, listed], "messages")


def sent_bytes(
    run: Run, at_most: int | Sequence[int] | None = None, total: int | None = None
) -> None:
    """Each rank sends no more than `at_most` bytes, and all ranks together exactly `total`.

    >>> run = launch(lambda rank, world_size: dist.all_reduce(torch.ones(100)), 2)
    >>> sent_bytes(run, at_most=400)
    >>> sent_bytes(run, at_most=300)
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: too many bytes sent by ranks 0 and 1. ranks 0 and 1:
        sent 400 bytes, 300 are enough (1.33 times as many)
    """
    by_rank: Counter[int] = Counter()
    for event in run.ledger.events:
        by_rank[event.rank] += event.sent_bytes
    if at_most is not None:
        _at_most(run, by_rank, at_most, "bytes", "sent", "bytes")
    if total is not None and (got := sum(by_rank.values())) != total:
        lines = [f"rank {rank}: {by_rank[rank]} bytes" for rank in range(run.world_size)]
        fail(f"{got} bytes were sent in all, expected {total}{_times(got, total)}.", lines, "bytes")


def bytes_between_hosts(run: Run, ranks_per_host: int, at_most: float) -> None:
    """All hosts of so many ranks together send other hosts no more than `at_most` bytes."""
    by_host: defaultdict[int, float] = defaultdict(float)
    for event in run.ledger.events:
        by_host[event.rank // ranks_per_host] += event.bytes_to_other_hosts(ranks_per_host)
    if (got := sum(by_host.values())) > at_most:
        lines = [f"host {host}: {num_bytes:,.0f} bytes" for host, num_bytes in by_host.items()]
        enough = f"{at_most:,.0f} are enough{_times(got, at_most)}"
        fail(f"{got:,.0f} bytes were sent from host to host, {enough}.", sorted(lines), "bytes")


def peak_bytes(run: Run, at_most: int | Sequence[int], told: str = "") -> None:
    """No rank ever held more than `at_most` bytes of tensors at one moment.

    told: what the message adds, such as what was predicted.

    Raises:
        ValueError: the launch was not made with memory=True, so nothing is known.

    >>> run = launch(lambda rank, world_size: torch.ones(100).sum().item(), 2, memory=True)
    >>> peak_bytes(run, at_most=500)
    >>> peak_bytes(run, at_most=300)
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: too many bytes of tensors at once held by ranks 0 and 1.
        ranks 0 and 1: held 404 bytes of tensors at once, 300 are enough (1.35 times as
        many) What a name or a list holds is not freed; a view holds its whole tensor:
        clone().
    """
    if run.peak_bytes is None:
        raise ValueError("peak_bytes needs a launch made with memory=True: this one's was not")
    alive = "What a name or a list holds is not freed; a view holds its whole tensor: clone()."
    lines = [line for line in (told, alive) if line]
    _at_most(run, run.peak_bytes, at_most, "bytes of tensors at once", "held", "memory", lines)


def _count(op: str, sources: list[str], asked: int) -> str:
    where = f" ({', '.join(dict.fromkeys(sources))})" if sources else ""
    return f"{op}: got {len(sources)}, expected {asked}{where}"


def _pairs(pairs: Counter) -> str:
    return ", ".join(
        f"{sender}→{receiver}" + (f" ({count} times)" if count > 1 else "")
        for (sender, receiver), count in sorted(pairs.items())
    )


def _at_most(
    run: Run,
    got: Mapping[int, int] | Sequence[int],
    limits: int | Sequence[int],
    unit: str,
    done: str,
    of: str,
    lines: Iterable[str] = (),
) -> None:
    wrong = {}
    for rank in range(run.world_size):
        if (found := got[rank]) > (limit := at(limits, rank, run)):
            wrong[rank] = [f"{done} {found} {unit}, {limit} are enough{_times(found, limit)}"]
    fail_on(run, wrong, f"too many {unit} {done} by", lines, of)


def _times(got: float, enough: float) -> str:
    return f" ({got / enough:.3g} times as many)" if enough and got >= 1.05 * enough else ""
