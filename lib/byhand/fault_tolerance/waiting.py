"""Who waits for whom, from the events of a ledger alone: so a slow rank is found. Pure.

All ranks of a collective leave it when the last has come. Whoever came before stood still for the
last one, from its own wait until the last one's call:

    rank 0   ──────●░░░░░░░░░░   waits for rank 2
    rank 1   ────────●░░░░░░░░   waits for rank 2
    rank 2   ────────────────●   the last: makes both wait

A late rank need not be slow: it may have waited in another group. Rank 1 is slow, rank 0 waits for
it in their tensor-parallel group, and so comes late to its data-parallel group, where rank 2 waits
for rank 0. So what a rank waited itself is taken from what it made others wait.

The rule: *a collective's wait counts once*. Whoever comes last is charged with the longest wait in
that collective, however many ranks stood still in it. Rank 0 then caused in the second group just
what it had waited in the first, and comes out at zero, whatever the sizes of the groups. (Counted
once for each rank that waits, a large second group would make it seem the slow one.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any


def waits(events: Iterable[Any]) -> dict[tuple[int, int], float]:
    """By (rank that waited, rank that it waited for): seconds, over all events.

    events: a ledger's, or anything that has their rank, op, group, group_name, peer, tag, start,
    wait_start and wait_end. A receive waits for its send.
    """
    found: dict[tuple[int, int], float] = defaultdict(float)
    for calls in meetings(events):
        late, waited = last_to_come(calls)
        for rank, seconds in waited.items():
            found[rank, late] += seconds
    return dict(found)


def stragglers(events: Iterable[Any]) -> dict[int, float]:
    """By rank, the seconds it made others wait, less those it waited itself; the slowest first.

    A collective's wait counts once, for the rank that came last: it is the longest wait in that
    collective. Of n ranks in one group, of which one is slow by s seconds a step: s a step for that
    one, and -s for each other.

    Compare ranks that are in as many groups each, as in a mesh. Who makes several groups wait, one
    after the other and for one delay, is charged by each of them.
    """
    events = list(events)
    net = dict.fromkeys(sorted(event.rank for event in events), 0.0)
    for calls in meetings(events):
        late, waited = last_to_come(calls)
        net[late] += max(waited.values(), default=0.0)
        for rank, seconds in waited.items():
            net[rank] -= seconds
    return dict(sorted(net.items(), key=lambda item: -item[1]))


def last_to_come(calls: Sequence[Any]) -> tuple[int, dict[int, float]]:
    """Of calls that need each other: the last rank, and by rank the seconds it made it wait."""
    last = max(calls, key=lambda call: call.start)
    waited: dict[int, float] = {}
    for call in calls:
        if call is last or call.wait_start is None or call.wait_end is None:
            continue
        seconds = min(call.wait_end, last.start) - call.wait_start
        if seconds > 0:
            waited[call.rank] = seconds
    return last.rank, waited


def meetings(events: Iterable[Any]) -> list[list[Any]]:
    """Calls that need each other: the k-th of every rank on a group, and a send and its recv.

    Those that lack a rank, because it died say, are left out.
    """
    in_order = sorted(events, key=lambda event: event.start)
    met: dict[tuple, list[Any]] = defaultdict(list)
    calls: dict[tuple, int] = defaultdict(int)
    for event in in_order:
        if event.op not in ("send", "recv"):
            key = (event.group_name, tuple(event.group))
            calls[event.rank, key] += 1
            met[*key, calls[event.rank, key]].append(event)
    whole = [found for (_, group, _), found in met.items() if len(found) == len(group)]
    return whole + _messages(in_order)


def _messages(in_order: Sequence[Any]) -> list[list[Any]]:
    """Each send with the receive that took it.

    The rule is that of byhand.figures.messages, on each group: receives from any rank take what no
    other receive does, in order.
    """
    under_way: dict[tuple, list[Any]] = defaultdict(list)  # to a rank, with a tag, on a group
    for event in in_order:
        if event.op == "send":
            under_way[event.peer, event.tag, event.group_name, tuple(event.group)].append(event)
    pairs, receives = [], [event for event in in_order if event.op == "recv"]
    for receive in sorted(receives, key=lambda event: event.peer is None):
        sends = under_way[receive.rank, receive.tag, receive.group_name, tuple(receive.group)]
        if send := next((send for send in sends if receive.peer in (send.rank, None)), None):
            sends.remove(send)
            pairs.append([send, receive])
    return pairs
