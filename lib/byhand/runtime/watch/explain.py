"""Why ranks that all wait can never go on: from the calls that they wait in, a sentence. Pure."""

from __future__ import annotations

from byhand.runtime.ledger import SETUP_OPS, Event
from byhand.runtime.watch.matching import Matcher
from byhand.words import counted, ranks_text


def explain(waiting: dict[int, Event], gone: dict[int, str], matcher: Matcher) -> str:
    """One sentence for ranks that all wait in unmatched calls: `waiting`, by rank.

    `gone` names the ranks that take no further part and how they left: "returned", "raised"...
    """
    for call in waiting.values():
        absent = matcher.missing(call) & set(gone)
        if absent:
            return _left(call, absent, waiting, gone, matcher)
    cycle = _cycle({rank: matcher.missing(call) for rank, call in waiting.items()})
    return _cycle_sentence(cycle, waiting, matcher)


def unmet(waiting: dict[int, Event], seconds: float) -> str:
    """One sentence for ranks that all wait in set-up calls which all have made, by rank."""
    op = waiting[min(waiting)].op
    return (
        f"{ranks_text(waiting)} have all called {op}, and after {seconds:g} s they have not met."
        " Most often one names another address, one that it cannot reach, or another's number."
    )


def let_go(send: Event) -> str:
    """Why a message that another rank waits for may never come: its sender did not wait for it."""
    return (
        f"rank {send.rank} returned without waiting for its isend to rank {send.peer}"
        f" ({send.source}), so what it sent may be lost. Call wait() on what isend returns."
    )


def _left(
    call: Event, absent: set[int], waiting: dict[int, Event], gone: dict[int, str], matcher: Matcher
) -> str:
    rank = min(absent)
    how = gone[rank]
    if call.op == "recv" and call.peer is None:
        return (
            f"rank {call.rank} waits to receive from any rank, but {ranks_text(absent)} {how} "
            "without sending. Every receive needs its send."
        )
    if call.op == "recv":
        sent = _with_tags(call, matcher) or "without sending"
        return (
            f"rank {call.rank} waits to receive from rank {rank}, which {how} {sent}. "
            "Every receive needs its send."
        )
    if call.op == "send":
        return (
            f"rank {call.rank} waits to send to rank {rank}, which {how} without receiving. "
            "Every send needs its receive."
        )
    together = [
        r
        for r, other in waiting.items()
        if other.group_name == call.group_name and other.op == call.op
    ]
    where, made = matcher.where(call, matcher.number(call)), matcher.calls_made(rank, call)
    if call.op in SETUP_OPS:
        rule = "Every rank must make this call."
    else:
        rule = "Every rank of the group must make every call."
    return (
        f"{ranks_text(together)} wait{'s' if len(together) == 1 else ''} in {call.op} "
        f"({where}), but {ranks_text(absent)} {how} after "
        f"{counted(made, 'such call')}. {rule}"
    )


def _with_tags(call: Event, matcher: Matcher) -> str:
    """What the sender sent instead of what a receive waits for, if it was with another tag."""
    tags = sorted(matcher.other_tags(call))
    if not tags:
        return ""
    return f"after a send with tag {' and '.join(map(str, tags))}, not with tag {call.tag}"


def lost(waiting: dict[int, Event], absent: set[int], matcher: Matcher) -> str:
    """One sentence for ranks whose connection was closed in unmatched calls: `waiting`, by rank.

    absent: those that had not joined the first of them. At least one of these has left the group.
    """
    call = waiting[min(waiting)]
    return (
        f"{ranks_text(set(waiting))} waited in {_call_text(call, matcher)}, which"
        f" {ranks_text(absent)} had not joined, when a connection was closed, as"
        " destroy_process_group does. No rank may leave while another waits for it."
    )


def _cycle(edges: dict[int, set[int]]) -> list[int]:
    """Ranks r0, r1, ... where each waits for the next and the last for the first."""
    path = [min(edges)]
    while True:
        following = min((rank for rank in edges[path[-1]] if rank in edges), default=path[-1])
        if following in path:
            return path[path.index(following) :]
        path.append(following)


def _cycle_sentence(cycle: list[int], waiting: dict[int, Event], matcher: Matcher) -> str:
    ops = {waiting[rank].op for rank in cycle}
    arrows = " → ".join(str(rank) for rank in [*cycle, cycle[0]])
    if ops == {"recv"} and not any(matcher.other_tags(waiting[rank]) for rank in cycle):
        waits = f"receives in a cycle {arrows}: each of these ranks waits to receive from the next"
        for rank in cycle:
            if peers := matcher.unreceived(rank) & {*cycle}:
                return (
                    f"{waits}, and nobody receives what rank {rank} has sent to "
                    f"{ranks_text(peers)}. A send and its receive must name each other."
                )
        return f"{waits} before it sends. Let one of them send first, or use isend."
    if ops == {"send"}:
        return (
            f"sends in a cycle {arrows}: a blocking send returns only when the other rank "
            "receives, and each of these ranks sends first. Let one of them receive first, "
            "or start both calls at once with batch_isend_irecv."
        )
    parts = [f"rank {rank} waits in {_call_text(waiting[rank], matcher)}" for rank in cycle]
    sentence = f"ranks wait for each other, {arrows}: {'; '.join(parts)}. "
    lonely = [waiting[rank] for rank in cycle if waiting[rank].op in ("send", "recv")]
    if not lonely:
        return sentence + _ORDER_RULE
    return sentence + " ".join([*(_lonely(call, matcher) for call in lonely), _MESSAGE_RULE])


_ORDER_RULE = (
    "Each needs a call that the other makes only later. All ranks must make their calls in one"
    " order."
)
_MESSAGE_RULE = (
    "Every send and every receive needs its partner, which the other rank must call before it waits"
    " for this one."
)


def _lonely(call: Event, matcher: Matcher) -> str:
    """What the other rank of a message has not done for it."""
    if call.op == "send":
        return f"Nobody receives what rank {call.rank} sends to rank {call.peer}."
    if call.peer is None:
        return f"Nobody sends to rank {call.rank}."
    instead = _with_tags(call, matcher)
    if instead:
        return f"Rank {call.peer} waits {instead}."
    return f"Nothing is on its way from rank {call.peer} to rank {call.rank}."


def _call_text(call: Event, matcher: Matcher) -> str:
    if call.op == "recv":
        return "recv from any rank" if call.peer is None else f"recv from rank {call.peer}"
    if call.op == "send":
        return f"send to rank {call.peer}"
    return f"{call.op} on {matcher.group_text(call)}"
